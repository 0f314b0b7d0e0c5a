#include "cc/core/attention/attention_kernel.h"

#include "cc/simd/convert/convert.h"
#include "cc/simd/math/softmax_row.h"

namespace bd::BD_ISA {
namespace {

void Scale(const float* src, int64_t stride, int64_t rows, int64_t columns, float scale,
           float* dst) {
  for (int64_t r = 0; r < rows; ++r) ScaleRow(src + r * stride, scale, columns, dst + r * columns);
}

// A vector of floats that are bfloat16 numbers.
inline Vec Rounded(Vec v) {
  alignas(64) Bfloat16 numbers[kLanes];
  StoreAs(numbers, v);
  return LoadAs(numbers);
}

void PairRows(const float* src, int64_t stride, int64_t rows, int64_t columns, int64_t width,
              float* dst) {
  const Vec upper = FromBits(SetInt(-65536)), lower = FromBits(SetInt(65535));
  for (int64_t r = 0; r < rows; r += 2, src += 2 * stride, dst += width) {
    for (int64_t c = 0; c < width; c += kLanes) {
      const int n = AtMostLanes(columns - c);
      const Vec first = Rounded(LoadN(src + c, n));
      const Vec second = r + 1 < rows ? Rounded(LoadN(src + stride + c, n)) : Zero();
      const Vec down = FromBits(ShiftRight<16>(Bits(first)));  // with copies of the sign above
      Store(dst + c, Or(And(down, lower), And(second, upper)));
    }
  }
}

inline void AddRow(const float* bias, int64_t step, int64_t columns, float* scores) {
  if (step == 0) {
    for (int64_t c = 0; c < columns; ++c) scores[c] += *bias;
    return;
  }
  Map(
      scores, columns, [](Vec x, Vec b) { return Add(x, b); }, scores, bias);
}

inline void CapRow(float cap, int64_t columns, float* scores) {
  const Vec most = Set1(cap);
  Map(
      scores, columns, [=](Vec x) { return Mul(most, Tanh(x)); }, scores);
}

inline void MaskRow(const uint8_t* mask, int64_t step, int64_t columns, float masked,
                    float* scores) {
  if (step == 0) {
    if (*mask != 0) return;
    for (int64_t c = 0; c < columns; ++c) scores[c] = masked;
    return;
  }
  for (int64_t c = 0; c < columns; ++c) scores[c] = mask[c] != 0 ? scores[c] : masked;
}

void Weigh(const AttentionRows& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    float* scores = a.scores + r * a.stride;
    int64_t columns = a.taking_part + r * a.growth;
    if (columns > a.columns) columns = a.columns;
    const auto add = [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        AddRow(a.bias[i] + r * a.bias_stride[i], a.bias_step[i], columns, scores);
      }
    };
    if (a.soft_cap != 0.f) CapRow(a.soft_cap, columns, scores);
    add(0, a.late_bias);
    if (a.mask != nullptr) {
      MaskRow(a.mask + r * a.mask_stride, a.mask_step, columns, a.masked, scores);
    }
    add(a.late_bias, a.biases);
    SoftmaxRow(scores, columns, scores);
    if (a.zero_masked) MaskRow(a.mask + r * a.mask_stride, a.mask_step, columns, 0.f, scores);
    for (int64_t c = columns; c < a.columns; ++c) scores[c] = 0.f;
  }
}

inline float Dot(const float* a, const float* b, int64_t columns) {
  Vec even = Zero(), odd = Zero();
  int64_t c = 0;
  for (; c + 2 * kLanes <= columns; c += 2 * kLanes) {
    even = Fma(Load(a + c), Load(b + c), even);
    odd = Fma(Load(a + c + kLanes), Load(b + c + kLanes), odd);
  }
  for (; c < columns; c += kLanes) {
    const int lanes = AtMostLanes(columns - c);
    even = Fma(LoadN(a + c, lanes), LoadN(b + c, lanes), even);
  }
  return ReduceAdd(Add(even, odd));
}

void Dots(const float* q, const float* k, int64_t stride, int64_t keys, int64_t columns,
          float* scores) {
  for (int64_t s = 0; s < keys; ++s) scores[s] = Dot(q, k + s * stride, columns);
}

// Columns [0, kVecs vectors) of the sums, the last one of `lanes`.
template <int kVecs>
inline void CombineVecs(const float* weights, const float* v, int64_t stride, int64_t keys,
                        int lanes, float* dst) {
  Vec acc[kVecs];
#pragma GCC unroll 8
  for (int i = 0; i < kVecs; ++i) acc[i] = Zero();
  for (int64_t s = 0; s < keys; ++s, v += stride) {
    const Vec weight = Set1(weights[s]);
#pragma GCC unroll 8
    for (int i = 0; i < kVecs - 1; ++i) acc[i] = Fma(weight, Load(v + i * kLanes), acc[i]);
    acc[kVecs - 1] = Fma(weight, LoadN(v + (kVecs - 1) * kLanes, lanes), acc[kVecs - 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kVecs - 1; ++i) Store(dst + i * kLanes, acc[i]);
  StoreN(dst + (kVecs - 1) * kLanes, acc[kVecs - 1], lanes);
}

void Combine(const float* weights, const float* v, int64_t stride, int64_t keys, int64_t columns,
             float* dst) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
    CombineVecs<4>(weights, v + c, stride, keys, kLanes, dst + c);
  }
  for (; c < columns; c += kLanes) {
    CombineVecs<1>(weights, v + c, stride, keys, AtMostLanes(columns - c), dst + c);
  }
}

}  // namespace

constexpr AttentionKernels kAttentionKernels = {Scale, PairRows, Weigh, Dots, Combine};

}  // namespace bd::BD_ISA
