// The chain on tiles that stay in L1 while its steps pass over them. The tile
// lies outside dst, so dst may share memory with src or an operand.
#include "cc/core/eltwise/eltwise_kernel.h"

#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/convert/quantized.h"
#include "cc/simd/math/math_pair.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

constexpr int64_t kTileFloats = 1024;

// apply(tile, count, first element of the tensor) on each tile of the range.
template <typename F>
inline void ForEachTile(const EltwiseRange& r, F apply) {
  alignas(64) float tile[kTileFloats];
  const auto same = [](Vec x) { return x; };
  const int64_t end = r.begin + r.count;
  for (int64_t i = r.begin; i < end; i += kTileFloats) {
    const int64_t count = end - i < kTileFloats ? end - i : kTileFloats;
    Map(tile, count, same, r.src + i);
    apply(tile, count, i);
    Map(r.dst + i, count, same, tile);
  }
}

// Batch normalisation with ReLU before a convolution, a squeeze-and-excite's product:
// products and sums by channel, linear steps, then perhaps relu or relu6. They make
// one map, and one pass over registers instead of one over L1 a step.
struct Affine {
  alignas(64) float scale[kBlock], shift[kBlock];
  float lo = -__builtin_inff(), hi = __builtin_inff();
  bool clamps = false;

  Affine() {
    for (int i = 0; i < kBlock; ++i) scale[i] = 1.f, shift[i] = 0.f;
  }

  // Composes the step with what is there; false where it is no affine map.
  bool Then(const PostOpStep& step, const EltwiseRange& r) {
    if (step.kind == PostOpKind::kEltwise) {
      if (step.eltwise != EltwiseAlg::kLinear) return false;
      for (int i = 0; i < kBlock; ++i) {
        scale[i] *= step.alpha * step.scale;
        shift[i] = (shift[i] * step.alpha + step.beta) * step.scale;
      }
      return true;
    }
    const bool by_sample = step.shape == OperandShape::kSampleChannel;
    if (step.kind != PostOpKind::kBinary || !(by_sample || step.shape == OperandShape::kChannel)) {
      return false;
    }
    const float* operand = step.operand + (by_sample ? r.sample_channel : r.channel);
    if (step.binary != BinaryAlg::kMul && step.binary != BinaryAlg::kAdd) return false;
    for (int i = 0; i < kBlock; ++i) {
      if (step.binary == BinaryAlg::kAdd) {
        shift[i] += operand[i];
      } else {
        scale[i] *= operand[i];
        shift[i] *= operand[i];
      }
    }
    return true;
  }

  // The end of a chain.
  bool Clamps(const PostOpStep& step) {
    if (step.kind != PostOpKind::kEltwise || step.scale != 1.f) return false;
    const bool relu = step.eltwise == EltwiseAlg::kRelu && step.alpha == 0.f;
    if (!relu && step.eltwise != EltwiseAlg::kRelu6) return false;
    clamps = true;
    lo = 0.f;
    if (!relu) hi = 6.f;
    return true;
  }
};

// False where the program is anything else.
inline bool AsAffine(const EltwiseRange& r, Affine* affine) {
  const PostOpStep* step = r.program->steps;
  const PostOpStep* const end = step + r.program->count;
  while (step < end && affine->Then(*step, r)) ++step;
  if (step < end && affine->Clamps(*step)) ++step;
  return step == end;
}

// all_src and all_dst are at the first element of the range.
template <bool kClamps, typename T>
void RunAffine(const EltwiseRange& r, const Affine& affine, const T* all_src, T* all_dst) {
  const Vec lo = Set1(affine.lo), hi = Set1(affine.hi);
  for (int v = 0; v < kBlock; v += kLanes) {
    const Vec scale = Load(affine.scale + v), shift = Load(affine.shift + v);
    const T* src = all_src + v;
    T* dst = all_dst + v;
    const auto result = [&](int64_t i) {
      const Vec x = Fma(scale, LoadAs(src + i), shift);
      return kClamps ? Min(hi, Max(lo, x)) : x;
    };
    int64_t i = 0;
    if (r.valid_lanes >= kBlock) {
      if constexpr (kVecsPerBlock == 1) {
#pragma GCC unroll 2
        for (; i + 2 * kBlock <= r.count; i += 2 * kBlock) {
          StoreAs(dst + i, result(i), result(i + kBlock));
        }
      }
#pragma GCC unroll 4
      for (; i < r.count; i += kBlock) StoreAs(dst + i, result(i));
    } else {
      for (; i < r.count; i += kBlock) {
        StoreAs(dst + i, KeepFirst(result(i), r.valid_lanes - v));
      }
    }
  }
}

template <typename T>
void RunAffine(const EltwiseRange& r, const Affine& affine, const T* src, T* dst) {
  if (affine.clamps) return RunAffine<true>(r, affine, src, dst);
  RunAffine<false>(r, affine, src, dst);
}

void Blocked(const EltwiseRange& r) {
  Affine affine;
  if (AsAffine(r, &affine)) return RunAffine(r, affine, r.src + r.begin, r.dst + r.begin);
  ForEachTile(r, [&](float* tile, int64_t count, int64_t i) {
    r.program->kernels->blocked(*r.program, tile, tile, static_cast<int>(count / kBlock), i,
                                r.channel, r.sample_channel, r.valid_lanes);
  });
}

void Plain(const EltwiseRange& r) {
  ForEachTile(r, [&](float* tile, int64_t count, int64_t i) {
    r.program->kernels->rows(*r.program, tile,
                             {1, count, count, i, 0, (r.channel + i - r.begin) % r.channels,
                              r.channels, r.sample_channel});
  });
}

// In steps of dst. Products and sums are rounded separately, since not all instruction sets have a
// fused one. Factors with which some byte would be no int32 when rounded, or NaN, take another way.
bool AffineBytes(const EltwiseBytes& b) {
  const EltwiseRange& r = b.range;
  Affine affine;
  if (!AsAffine(r, &affine)) return false;
  const Vec inverse = Set1(1.f / b.to.scale), step = Mul(Set1(b.from.scale), inverse);
  Vec scale[kVecsPerBlock], shift[kVecsPerBlock];
  for (int v = 0; v < kVecsPerBlock; ++v) {
    const int valid = r.valid_lanes - v * kLanes;
    scale[v] = KeepFirst(Mul(step, Load(affine.scale + v * kLanes)), valid);
    shift[v] = KeepFirst(Mul(inverse, Load(affine.shift + v * kLanes)), valid);
    const Vec most = Add(Mul(Abs(scale[v]), Set1(255.f)), Abs(shift[v]));
    if (!All(Less(most, Set1(0x1p30f)))) return false;
  }
  const Quantizer to(b.to, affine.lo, affine.hi);
  const IVec from_zero = SetInt(b.from.zero_point);
  const auto four = [&](const uint8_t* src, uint8_t* dst) {
    Vec x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vec steps = ToFloat(SubInt(LoadInt(src + i * kLanes), from_zero));
      x[i] = Add(Mul(scale[i % kVecsPerBlock], steps), shift[i % kVecsPerBlock]);
    }
    to.StoreSteps(dst, x);
  };
  constexpr int64_t kFour = 4 * kLanes;
  int64_t i = 0;
  for (; i + kFour <= r.count; i += kFour) four(b.src + i, b.dst + i);
  if (i < r.count) {
    uint8_t some[kFour] = {};
    __builtin_memcpy(some, b.src + i, static_cast<size_t>(r.count - i));
    four(some, some);
    __builtin_memcpy(b.dst + i, some, static_cast<size_t>(r.count - i));
  }
  return true;
}

bool AffineBf16(const EltwiseBf16& b) {
  Affine affine;
  if (!AsAffine(b.range, &affine)) return false;
  RunAffine(b.range, affine, b.src, b.dst);
  return true;
}

}  // namespace

constexpr EltwiseKernels kEltwiseKernels = {Blocked, Plain, AffineBytes, AffineBf16};

}  // namespace bd::BD_ISA
