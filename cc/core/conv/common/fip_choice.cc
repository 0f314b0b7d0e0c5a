#include "cc/core/conv/common/fip_choice.h"

#include "cc/base/cpu/cpu_model.h"
#include "cc/core/gemm/tiles/fip_kernel.h"

namespace bd {
namespace {

// Fewer results a pixel save less than the pixel's terms and sums take (1x1 on Zen 4, in times of
// "direct": 32->16 at 112x112 1.15, 144->16 at 56x56 1.03; but 144->32 0.89, 32->64 at 112x112
// 0.91).
constexpr int64_t kMinOutputChannels = 32;
// Scales and terms are two vectors a plane beside its weights: a sixteenth at most.
constexpr int64_t kMinWinogradChannels = 32;

}  // namespace

bool UsesFip(const ConvDesc& d, bool winograd, Isa isa) {
  if (d.groups > 1 || FipKernelsFor(isa).tile_pixels == 0 || d.ic() < 16) return false;
  if (d.algorithm == ConvAlgorithm::kFip) return true;
  if (d.algorithm == ConvAlgorithm::kDirect || d.algorithm == ConvAlgorithm::kWinograd) {
    return false;
  }
  if (winograd && (d.algorithm != ConvAlgorithm::kAuto || d.ic() < kMinWinogradChannels)) {
    return false;
  }
  return AddsBesideMultiplies() && d.oc() >= kMinOutputChannels;
}

}  // namespace bd
