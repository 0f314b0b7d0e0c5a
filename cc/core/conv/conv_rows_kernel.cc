// Inner products of few rows: every weight is used once a row, so all that counts is
// how fast weights come from memory. kDepth rows of weights are read side by side,
// each in order, and dst stays in L1. Read at once, 25088 x 4096 weights come at (GB/s,
// 2 threads, on huge pages): 32 columns of 128 rows 39, 4 rows 40, 8 rows 46, 16 rows
// 49; reading alone does 57.
#include "cc/core/conv/conv_rows_kernel.h"

#include "cc/core/conv/conv_epilogue_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kDepth = 16;
constexpr int kRowsLimit = 14;  // of 32 registers, 16 hold weights
#else
constexpr int kDepth = 8;
constexpr int kRowsLimit = 6;  // of 16, 8
#endif

// Rows [k, k + kDeep) of weights into kRows rows of dst.
template <int kRows, int kDeep>
inline void Pass(const RowsArgs& a, int64_t k) {
  Vec x[kRows == 1 ? kDeep : 1];
  if constexpr (kRows == 1) {
    BD_UNROLL
    for (int r = 0; r < kDeep; ++r) x[r] = Set1(a.src[k + r]);
  }
  const float* weights = a.weights + k * a.weights_stride;
  const auto step = [&](int64_t c, auto read, auto write) __attribute__((always_inline)) {
    Vec w[kDeep];
    BD_UNROLL
    for (int r = 0; r < kDeep; ++r) w[r] = read(weights + r * a.weights_stride + c);
    BD_UNROLL
    for (int m = 0; m < kRows; ++m) {
      float* dst = a.dst + m * a.count + c;
      Vec sum = read(dst);
      BD_UNROLL
      for (int r = 0; r < kDeep; ++r) {
        sum = Fma(kRows == 1 ? x[kRows == 1 ? r : 0] : Set1(a.src[m * a.ic + k + r]), w[r], sum);
      }
      write(dst, sum);
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= a.count; c += kLanes) {
    step(
        c, [](const float* p) { return Load(p); }, [](float* p, Vec v) { Store(p, v); });
  }
  if (c == a.count) return;
  const int rest = static_cast<int>(a.count - c);
  step(
      c, [=](const float* p) { return LoadN(p, rest); },
      [=](float* p, Vec v) { StoreN(p, v, rest); });
}

template <int kRows>
void Multiply(const RowsArgs& a) {
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t c = 0; c < a.count; ++c) {
      a.dst[m * a.count + c] = a.bias != nullptr ? a.bias[c] : 0.f;
    }
  }
  int64_t k = 0;
  for (; k + kDepth <= a.ic; k += kDepth) Pass<kRows, kDepth>(a, k);
  for (; k < a.ic; ++k) Pass<kRows, 1>(a, k);
}

template <int kRows>
void MultiplyUpTo(const RowsArgs& a) {
  if constexpr (kRows > 0) {
    return a.rows == kRows ? Multiply<kRows>(a) : MultiplyUpTo<kRows - 1>(a);
  }
}

constexpr RowsKernels kTable = {kRowsLimit, MultiplyUpTo<kRowsLimit>};

}  // namespace

const RowsKernels& GetRowsKernels() { return kTable; }

}  // namespace bd::BD_ISA
