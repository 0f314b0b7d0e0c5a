#include <algorithm>

#include "cc/core/normalization/layer_norm.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into tasks of about
// kTaskNs, which are a multiple of the pixels that a kernel takes at once.
constexpr int64_t kInlineNs = 20000, kTaskNs = 10000, kPixels = 8;

// Three passes over a pixel in L1, the first of which brings it there.
constexpr int64_t PixelNs(int64_t channels) { return 6 + channels / 8; }

}  // namespace

std::string MakeLayerNormPlan(const LayerNormDesc& desc, Isa isa, LayerNormPlan* plan) {
  if (desc.images < 0 || desc.pixels < 0 || desc.channels < 1) {
    return "layer normalisation of " + std::to_string(desc.images) + " images of " +
           std::to_string(desc.pixels) + " pixels of " + std::to_string(desc.channels) +
           " channels: sizes must not be negative, and there must be a channel";
  }
  LayerNormPlan p;
  p.desc = desc;
  p.kernels = &LayerNormKernelsFor(isa);
  const int64_t pixel_ns = PixelNs(desc.channels);
  const int64_t wanted = desc.images * desc.pixels * pixel_ns < kInlineNs
                             ? desc.pixels
                             : std::min(desc.pixels, kTaskNs / pixel_ns);
  p.pixels_per_task = std::max<int64_t>(1, (wanted + kPixels - 1) / kPixels) * kPixels;
  p.tasks_per_image = (desc.pixels + p.pixels_per_task - 1) / p.pixels_per_task;
  *plan = p;
  return "";
}

std::string MakeLayerNormGradPlan(const LayerNormDesc& desc, Isa isa, LayerNormGradPlan* plan) {
  LayerNormGradPlan p;
  const std::string wrong = MakeLayerNormPlan(desc, isa, &p.tasks);
  if (!wrong.empty()) return wrong;
  const int64_t lanes = (desc.channels + 15) / 16 * 16;
  p.sums = p.scratch.Book<float>("sums", 2 * lanes, desc.images * p.tasks.tasks_per_image);
  *plan = p;
  return "";
}

}  // namespace bd
