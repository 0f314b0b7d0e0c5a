#include "cc/core/softmax/softmax_kernel.h"

#include "cc/simd/math/softmax_row.h"

namespace bd::BD_ISA {
namespace {

void Rows(const float* src, int64_t rows, int64_t channels, float* dst) {
  for (int64_t row = 0; row < rows; ++row) {
    SoftmaxRow(src + row * channels, channels, dst + row * channels);
  }
}

constexpr SoftmaxKernels kKernels = {Rows};

}  // namespace

const SoftmaxKernels& GetSoftmaxKernels() { return kKernels; }

}  // namespace bd::BD_ISA
