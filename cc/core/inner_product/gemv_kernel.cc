// Inner products of few rows: every weight is used once a row, so all that counts is
// how fast weights come from memory, and whether they need to. kDepth rows of weights are read side
// by side, each in order, and dst stays in L1. Read at once, 25088 x 4096 weights come at (GB/s, 2
// threads, on huge pages): 32 columns of 128 rows 39, 4 rows 40, 8 rows 46, 16 rows 49; reading
// alone does 57.
#include "cc/core/inner_product/gemv_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kDepth = 16;
constexpr int kRowsLimit = 14;  // of 32 registers, 16 hold weights
constexpr int kKeptRowsLimit = kRowsLimit;
#else
constexpr int kDepth = 8;
constexpr int kRowsLimit = 6;  // of 16, 8
// Each row costs a load of its own for every multiply-add. As they are and packed, AVX2, 2 threads:
// 25088 x 4096, 3 rows 14.1 (compressed) and 16.3 ms, 4 rows 24.4 and 17.7, 6 rows 25.2 and 16.3.
constexpr int kKeptRowsLimit = 3;
#endif

constexpr int kStretch = 512;  // rows of weights that are looked through at a time

template <int kRows>
inline bool Meets(const float* src, int64_t ic, int64_t k) {
  bool meets = false;
  BD_UNROLL
  for (int m = 0; m < kRows; ++m) meets |= src[m * ic + k] != 0.f;
  return meets;
}

template <int kRows>
int64_t CountMet(const float* src, int64_t rows, int64_t ic) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return CountMet<kRows - 1>(src, rows, ic);
  }
  int32_t count = 0;
  for (int64_t k = 0; k < ic; ++k) count += Meets<kRows>(src, ic, k);
  return count;
}

// Lists the rows of weights of [begin, end) that are to be read; returns their number.
template <int kRows>
inline int List(const GemvArgs& a, int64_t begin, int64_t end, int* list) {
  int count = 0;
  for (int64_t k = begin; k < end; ++k) {
    list[count] = static_cast<int>(k);
    count += !a.skips_zeros || Meets<kRows>(a.src, a.ic, k);
  }
  return count;
}

// The listed kDeep rows of weights into kRows rows of dst. The rows `next` are brought near
// meanwhile: rows of a thousand columns end before the hardware has seen that they are read in
// order (1280 x 1000 weights out of L3, 2 threads, 13 % less time).
template <int kRows, int kDeep>
inline void Pass(const GemvArgs& a, const int* list, const int* next) {
  const float* weights[kDeep];
  const float* ahead[kDeep];
  float x[kRows][kDeep];
  BD_UNROLL
  for (int r = 0; r < kDeep; ++r) {
    weights[r] = a.weights + list[r] * a.weights_stride;
    ahead[r] = a.weights + next[r] * a.weights_stride;
    for (int m = 0; m < kRows; ++m) x[m][r] = a.src[m * a.ic + list[r]];
  }
  const auto step = [&](int64_t c, auto read, auto write) __attribute__((always_inline)) {
    Vec w[kDeep];
    BD_UNROLL
    for (int r = 0; r < kDeep; ++r) {
      w[r] = read(weights[r] + c);
      __builtin_prefetch(ahead[r] + c, 0, 2);
    }
    BD_UNROLL
    for (int m = 0; m < kRows; ++m) {
      float* dst = a.dst + m * a.count + c;
      Vec sum = read(dst);
      BD_UNROLL
      for (int r = 0; r < kDeep; ++r) {
        // Of one row x stays in registers; of more it would be spilled, a vector for each float.
        sum = kRows == 1 ? Fma(Set1(x[m][r]), w[r], sum) : FmaAt(&x[m][r], w[r], sum);
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
void Multiply(const GemvArgs& a) {
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t c = 0; c < a.count; ++c) {
      a.dst[m * a.count + c] = a.bias != nullptr ? a.bias[c] : 0.f;
    }
  }
  int list[kDepth + kStretch];
  int count = 0;  // listed, but not multiplied yet
  for (int64_t k = 0; k < a.ic; k += kStretch) {
    count += List<kRows>(a, k, k + kStretch < a.ic ? k + kStretch : a.ic, list + count);
    int done = 0;
    for (; done + kDepth <= count; done += kDepth) {
      const bool more = done + 2 * kDepth <= count;
      Pass<kRows, kDepth>(a, list + done, list + (more ? done + kDepth : done));
    }
    count -= done;
    for (int i = 0; i < count; ++i) list[i] = list[done + i];
  }
  for (int i = 0; i < count; ++i) Pass<kRows, 1>(a, list + i, list + i);
}

template <int kRows>
void MultiplyUpTo(const GemvArgs& a) {
  if constexpr (kRows > 0) {
    return a.rows == kRows ? Multiply<kRows>(a) : MultiplyUpTo<kRows - 1>(a);
  }
}

}  // namespace

constexpr GemvKernels kGemvKernels = {kRowsLimit, kKeptRowsLimit, CountMet<kRowsLimit>,
                                      MultiplyUpTo<kRowsLimit>};

}  // namespace bd::BD_ISA
