#include <algorithm>

#include "cc/core/inner_product/inner_product_bf16.h"

namespace bd {
namespace {

// A task reads some 256 KB of weights: about 10 us from memory.
constexpr int64_t kTaskNumbers = 128 * 1024;

}  // namespace

std::string MakeInnerProductBf16Plan(const InnerProductBf16Desc& desc, Isa isa,
                                     InnerProductBf16Plan* plan) {
  const TensorView &src = desc.src, &dst = desc.dst;
  if (src.dtype() != DataType::bf16 || dst.dtype() != DataType::f32) {
    return std::string("this inner product is of bfloat16 to float32, got ") +
           DataTypeName(src.dtype()) + " to " + DataTypeName(dst.dtype());
  }
  if (src.layout() != Layout::nc || dst.layout() != Layout::nc || src.n() != dst.n()) {
    return "an inner product is of rows, [rows, inputs] to [rows, outputs], got " + src.ToString() +
           " to " + dst.ToString();
  }
  InnerProductBf16Plan p;
  p.desc = desc;
  p.panels = (dst.c() + kBf16PanelOutputs - 1) / kBf16PanelOutputs;
  p.pairs = (src.c() + 1) / 2;
  p.panels_per_task = std::max<int64_t>(1, kTaskNumbers / std::max<int64_t>(1, p.panel_numbers()));
  p.tasks = src.n() == 0 ? 0 : (p.panels + p.panels_per_task - 1) / p.panels_per_task;
  p.kernels = &InnerProductBf16KernelsFor(isa);
  *plan = p;
  return "";
}

}  // namespace bd
