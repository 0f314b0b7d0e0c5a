// Sums and products of 16 columns side by side: loops over arrays that the compiler makes vectors
// of.
#include "cc/core/gemm/tiles/fip_weights_kernel.h"

#include "cc/core/gemm/tiles/fip_kernel.h"

namespace bd::BD_ISA {
namespace {

constexpr int kWidth = 16;

void Squares(int64_t rows, int64_t row_stride, const float* weights, double* squares,
             double* sums) {
  double of_squares[kWidth] = {}, of_magnitudes[kWidth] = {};
  for (int64_t r = 0; r < rows; ++r, weights += row_stride) {
    for (int i = 0; i < kWidth; ++i) {
      const double y = weights[i];
      of_squares[i] += y * y;
      of_magnitudes[i] += __builtin_fabs(y);
    }
  }
  for (int i = 0; i < kWidth; ++i) {
    squares[i] = of_squares[i];
    sums[i] = of_magnitudes[i];
  }
}

void Scale(int64_t rows, int64_t row_stride, const float* factors, float* weights) {
  float by[kWidth];
  for (int i = 0; i < kWidth; ++i) by[i] = factors[i];
  for (int64_t r = 0; r < rows; ++r, weights += row_stride) {
    for (int i = 0; i < kWidth; ++i) weights[i] *= by[i];
  }
}

void AddTerms(int64_t taps, int64_t row_stride, const float* weights, float* terms) {
  float sums[kWidth];
  for (int i = 0; i < kWidth; ++i) sums[i] = terms[i];
  for (int64_t t = 0; t < taps; ++t, weights += kWidth * row_stride) {
    for (const ChannelPair& pair : kChannelPairs) {
      const float* y1 = weights + pair.c * row_stride;
      const float* y2 = y1 + row_stride;
      for (int i = 0; i < kWidth; ++i) sums[i] -= pair.sign * y1[i] * y2[i];
    }
  }
  for (int i = 0; i < kWidth; ++i) terms[i] = sums[i];
}

constexpr FipWeightsKernels kTable = {Squares, Scale, AddTerms};

}  // namespace

const FipWeightsKernels& GetFipWeightsKernels() { return kTable; }

}  // namespace bd::BD_ISA
