#include "cc/core/attention/attention_kernel.h"

#include "cc/simd/math/softmax_row.h"

namespace bd::BD_ISA {
namespace {

void Scale(const float* src, int64_t stride, int64_t rows, int64_t columns, float scale,
           float* dst) {
  for (int64_t r = 0; r < rows; ++r) ScaleRow(src + r * stride, scale, columns, dst + r * columns);
}

inline void AddRow(const float* bias, int64_t columns, float* scores) {
  int64_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    Store(scores + c, Add(Load(scores + c), Load(bias + c)));
  }
  const int tail = static_cast<int>(columns - c);
  if (tail > 0) StoreN(scores + c, Add(LoadN(scores + c, tail), LoadN(bias + c, tail)), tail);
}

inline void MaskRow(const uint8_t* mask, int64_t columns, float masked, float* scores) {
  for (int64_t c = 0; c < columns; ++c) scores[c] = mask[c] != 0 ? scores[c] : masked;
}

void Weigh(const AttentionRows& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    float* scores = a.scores + r * a.stride;
    int64_t columns = a.taking_part + r * a.growth;
    if (columns > a.columns) columns = a.columns;
    for (int i = 0; i < a.biases; ++i) AddRow(a.bias[i] + r * a.bias_stride[i], columns, scores);
    if (a.mask != nullptr) MaskRow(a.mask + r * a.mask_stride, columns, a.masked, scores);
    SoftmaxRow(scores, columns, scores);
    for (int64_t c = columns; c < a.columns; ++c) scores[c] = 0.f;
  }
}

constexpr AttentionKernels kKernels = {Scale, Weigh};

}  // namespace

const AttentionKernels& GetAttentionKernels() { return kKernels; }

}  // namespace bd::BD_ISA
