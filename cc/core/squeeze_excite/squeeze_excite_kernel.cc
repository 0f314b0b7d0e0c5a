// Both products have one row of one side, so all that counts is how fast weights come
// from the caches; each is read once, in order.
#include "cc/core/squeeze_excite/squeeze_excite_kernel.h"

#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/fold_plane.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Columns [first, first + kVecs vectors) of sum over rows r of x[r] * weights[r]; the
// last vector has `last` lanes. Rows go to kDeep chains, which hides the latency of Fma.
template <int kVecs, int kDeep>
inline void Columns(const float* x, int64_t rows, const float* weights, int64_t stride,
                    const float* bias, int last, float* dst) {
  const auto read = [last](const float* p, int v) __attribute__((always_inline)) {
    return v == kVecs - 1 ? LoadN(p + v * kLanes, last) : Load(p + v * kLanes);
  };
  Vec acc[kDeep][kVecs];
  BD_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    acc[0][v] = bias == nullptr ? Zero() : read(bias, v);
    BD_UNROLL
    for (int d = 1; d < kDeep; ++d) acc[d][v] = Zero();
  }
  int64_t r = 0;
  for (; r + kDeep <= rows; r += kDeep, weights += kDeep * stride) {
    BD_UNROLL
    for (int d = 0; d < kDeep; ++d) {
      const Vec factor = Set1(x[r + d]);
      BD_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        acc[d][v] = Fma(factor, read(weights + d * stride, v), acc[d][v]);
      }
    }
  }
  for (; r < rows; ++r, weights += stride) {
    const Vec factor = Set1(x[r]);
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) acc[0][v] = Fma(factor, read(weights, v), acc[0][v]);
  }
  BD_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    BD_UNROLL
    for (int d = 1; d < kDeep; ++d) acc[0][v] = Add(acc[0][v], acc[d][v]);
    StoreN(dst + v * kLanes, acc[0][v], v == kVecs - 1 ? last : kLanes);
  }
}

// dst[0, columns) = bias + x times weights, `rows` rows `stride` floats apart.
void Product(const float* x, int64_t rows, const float* weights, int64_t stride, const float* bias,
             int64_t columns, float* dst) {
  int64_t c = 0;
  const auto at = [&](int64_t skip) { return bias == nullptr ? nullptr : bias + skip; };
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
    Columns<4, 2>(x, rows, weights + c, stride, at(c), kLanes, dst + c);
  }
  for (; c + 2 * kLanes <= columns; c += 2 * kLanes) {
    Columns<2, 4>(x, rows, weights + c, stride, at(c), kLanes, dst + c);
  }
  for (; c < columns; c += kLanes) {
    const int last = AtMostLanes(columns - c);
    Columns<1, 4>(x, rows, weights + c, stride, at(c), last, dst + c);
  }
}

// Asks for the weights while the means, which need a core's adders and little memory,
// are taken: a block's share of both matrices, each in the order in which it lies.
class Prefetcher {
 public:
  explicit Prefetcher(const ReduceArgs& a)
      : args_(a), row_(a.expand_weights), columns_((a.channels + kBlock - 1) / kBlock) {}

  void Block(int64_t c) {
    for (int64_t i = 0; i < args_.squeezed; ++i) {
      __builtin_prefetch(args_.weights + c * args_.squeezed + i * kBlock, 0, 2);
      __builtin_prefetch(row_ + column_ * kBlock, 0, 2);
      if (++column_ < columns_) continue;
      column_ = 0;
      row_ += args_.expand_stride;
    }
  }

 private:
  const ReduceArgs& args_;
  const float* row_;
  int64_t column_ = 0;
  const int64_t columns_;
};

void Reduce(const ReduceArgs& a) {
  Prefetcher prefetcher(a);
  for (int64_t c = 0; c < a.channels; c += kBlock) {
    if (a.expand_weights != nullptr) prefetcher.Block(c);
    FoldPlane<AvgOp>(a.src + c * a.pixels, a.pixels, a.mean + c, kBlock);
  }
  Product(a.mean, a.channels, a.weights, a.squeezed, nullptr, a.squeezed, a.sums);
}

// Element-wise chains read no operand: where the elements lie is of no interest.
void Apply(const PostOpProgram& program, float* x, int64_t count) {
  program.kernels->rows(program, x, {1, count, count, 0, 0, 0, count, 0});
}

// dst = src * scales, block by block.
void ScaleBlocks(const ExpandArgs& a) {
  for (int64_t c = 0; c < a.channels; c += kBlock) {
    Vec scale[kVecsPerBlock];
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) scale[v] = Load(a.scales + c + v * kLanes);
    const float* src = a.src + c * a.pixels;
    float* dst = a.dst + c * a.pixels;
    for (int64_t p = 0; p < a.pixels; ++p, src += kBlock, dst += kBlock) {
      BD_UNROLL
      for (int v = 0; v < kVecsPerBlock; ++v) {
        Store(dst + v * kLanes, Mul(Load(src + v * kLanes), scale[v]));
      }
    }
  }
}

void Expand(const ExpandArgs& a) {
  for (int64_t r = 0; r < a.squeezed; r += kLanes) {
    const int n = AtMostLanes(a.squeezed - r);
    Vec sum = LoadN(a.reduce_bias + r, n);
    for (int64_t s = 0; s < a.splits; ++s) sum = Add(sum, LoadN(a.sums + s * a.squeezed + r, n));
    StoreN(a.hidden + r, sum, n);
  }
  Apply(*a.reduce_program, a.hidden, a.squeezed);
  Product(a.hidden, a.squeezed, a.weights, a.weights_stride, a.bias, a.channels, a.scales);
  Apply(*a.program, a.scales, a.channels);
  for (int64_t c = a.channels; c < a.stored; ++c) a.scales[c] = 0.f;
  if (a.src != nullptr) ScaleBlocks(a);
}

}  // namespace

constexpr SqueezeExciteKernels kSqueezeExciteKernels = {Reduce, Expand};

}  // namespace bd::BD_ISA
