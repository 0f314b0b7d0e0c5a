#include "cc/core/softmax/softmax_kernel.h"

#include "cc/simd/math/softmax_row.h"

namespace bd::BD_ISA {
namespace {

void Rows(const float* src, int64_t rows, int64_t channels, float* dst) {
  // Less than a quad, or two vectors of 16 lanes that are nearly full.
  const bool in_registers = channels < 4 || (kLanes == 16 && channels > 24 && channels <= 32);
  if (!in_registers && channels <= 4 * kMaxQuads) {
    return QuadSoftmaxRows(src, rows, channels, dst);
  }
  int64_t row = 0;
  for (; in_registers && row + 4 <= rows; row += 4) {
    const int64_t at = row * channels;
    ShortSoftmaxRows<4>(src + at, static_cast<int>(channels), dst + at);
  }
  for (; row < rows; ++row) {
    SoftmaxRow(src + row * channels, channels, dst + row * channels);
  }
}

}  // namespace

constexpr SoftmaxKernels kSoftmaxKernels = {Rows};

}  // namespace bd::BD_ISA
