#include "cc/core/conv/common/fip_choice.h"

#include "cc/base/cpu/cpu_model.h"
#include "cc/core/gemm/fip_kernel.h"

namespace bd {
namespace {

// Fewer products, or one or two blocks of results that are not full, save less than the terms and
// the sums of the source's pixels take (1x1 on Zen 4, times of "direct": 16->96 at 112x112 1.06,
// 144->24 at 56x56 1.08, 32->16 at 112x112 1.34; but 24->144 0.96, 32->192 0.91, 144->32 0.92).
constexpr int64_t kMinProducts = 24;
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
  return AddsBesideMultiplies() && d.ic() * d.kh() * d.kw() >= kMinProducts &&
         d.oc() >= kMinOutputChannels;
}

}  // namespace bd
