#include <algorithm>
#include <cstring>

#include "cc/core/reorder/reorder.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

// A task moves about so much of the blocked tensor: some 20 us from the second
// level cache. Less is not worth another thread.
constexpr int64_t kFloatsPerTask = 64 * 1024;

// Beyond, src and dst together exceed a last level cache of 32 MB, and a store
// through the caches first reads the line it overwrites. memcpy switches here, too.
constexpr int64_t kStreamFloats = 4 * 1024 * 1024;

bool Supported(Layout layout) { return layout == Layout::nhwc || layout == Layout::nChw16c; }

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A single pixel of whole blocks lies the same in both layouts.
bool SameMemory(const ReorderDesc& d) {
  return d.src_layout == d.dst_layout || (d.h * d.w == 1 && d.channels % kBlock == 0);
}

}  // namespace

std::string MakeReorderPlan(const ReorderDesc& desc, Isa isa, ReorderPlan* plan) {
  for (Layout layout : {desc.src_layout, desc.dst_layout}) {
    if (!Supported(layout)) {
      return std::string("reorder supports nhwc and nChw16c, not ") + LayoutName(layout);
    }
  }
  if (std::min({desc.n, desc.channels, desc.h, desc.w}) < 0) {
    return "reorder of a tensor with a negative size";
  }
  *plan = ReorderPlan();
  plan->desc = desc;
  const int64_t floats = desc.dst().size();
  if (floats == 0) return "";

  if (SameMemory(desc)) {
    plan->copy_floats = floats;
    plan->strip = kFloatsPerTask;
    plan->strips = plan->tasks = CeilDiv(floats, kFloatsPerTask);
    return "";
  }
  const ReorderKernels& kernels = ReorderKernelsFor(isa);
  const bool to_blocked = desc.dst_layout == Layout::nChw16c;
  const ReorderKernel* kernel = to_blocked ? kernels.plain_to_blocked : kernels.blocked_to_plain;
  plan->kernel = kernel[0];
  if (floats >= kStreamFloats && (to_blocked || desc.channels % kBlock == 0)) {
    plan->streaming_kernel = kernel[1];
  }
  const int64_t pixels = desc.h * desc.w;
  const int64_t pixel_floats = CeilDiv(desc.channels, kBlock) * kBlock;
  plan->strip = std::min(pixels, CeilDiv(kFloatsPerTask, pixel_floats));
  plan->strips = CeilDiv(pixels, plan->strip);
  plan->tasks = desc.n * plan->strips;
  return "";
}

void RunReorder(const ReorderPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  if (plan.kernel == nullptr) {
    pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
      const int64_t first = task * plan.strip;
      memcpy(dst + first, src + first,
             std::min(plan.strip, plan.copy_floats - first) * sizeof(float));
    });
    return;
  }
  const ReorderDesc& d = plan.desc;
  const TensorDesc src_desc = d.src(), dst_desc = d.dst();
  const int64_t pixels = d.h * d.w;
  const bool aligned = reinterpret_cast<uintptr_t>(dst) % (kBlock * sizeof(float)) == 0;
  const ReorderKernel kernel =
      aligned && plan.streaming_kernel != nullptr ? plan.streaming_kernel : plan.kernel;
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t n = task / plan.strips;
    const int64_t first = task % plan.strips * plan.strip;
    ReorderStrip strip;
    strip.src = src + n * src_desc.strides()[kN] + first * src_desc.strides()[kW];
    strip.dst = dst + n * dst_desc.strides()[kN] + first * dst_desc.strides()[kW];
    strip.pixels = std::min(plan.strip, pixels - first);
    strip.channels = d.channels;
    strip.block_stride = pixels * kBlock;
    kernel(strip);
  });
}

}  // namespace bd
