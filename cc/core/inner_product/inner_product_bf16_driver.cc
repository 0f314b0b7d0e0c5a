#include <algorithm>

#include "cc/core/inner_product/inner_product_bf16.h"

namespace bd {

void RunInnerProductBf16(const InnerProductBf16Plan& plan, const Bfloat16* src,
                         const Bfloat16* packed, float* dst, ThreadPool& pool) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t first = task * plan.panels_per_task;
    const int64_t last = std::min(plan.panels, first + plan.panels_per_task);
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t output = panel * kBf16PanelOutputs;
      InnerProductBf16Args args;
      args.src = src;
      args.rows = from.n();
      args.inputs = from.c();
      args.src_stride = from.image_stride();
      args.panel = packed + panel * plan.panel_numbers();
      args.dst = dst + output;
      args.dst_stride = to.image_stride();
      args.outputs = std::min(kBf16PanelOutputs, to.c() - output);
      plan.kernels->panel(args);
    }
  });
}

}  // namespace bd
