#include "cc/core/conv/common/fip_choice.h"

#include "cc/base/cpu/cpu_model.h"
#include "cc/core/gemm/fip_kernel.h"

namespace bd {
namespace {

// Fewer channels save less than the source's terms take (16->96 at 112x112 gains 6 %, 32->16
// 2 %, 144->24 at 56x56 nothing).
constexpr int64_t kMinChannels = 16;
constexpr int64_t kMinOutputChannels = 16;
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
  return AddsBesideMultiplies() && d.ic() >= kMinChannels && d.oc() >= kMinOutputChannels;
}

}  // namespace bd
