#include <algorithm>

#include "cc/core/eltwise/eltwise.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

// 128 KB from src to dst take about as long as handing out a few tasks; twice
// that is not worth waking a thread for.
constexpr int64_t kTaskFloats = 1 << 15;
constexpr int64_t kInlineFloats = 1 << 16;

}  // namespace

std::string MakeEltwisePlan(const EltwiseDesc& desc, Isa isa, EltwisePlan* plan) {
  if (desc.channels < 1 || desc.n < 0 || desc.pixels < 0) {
    return "element-wise work on n = " + std::to_string(desc.n) +
           ", channels = " + std::to_string(desc.channels) +
           ", pixels = " + std::to_string(desc.pixels) +
           ": channels must be 1 or more, the others 0 or more";
  }
  const bool parts = desc.src_image_blocks > 0 || desc.dst_image_blocks > 0;
  if (parts && !desc.blocked) return "only blocked tensors can be parts of wider ones";
  if (desc.dst_image_blocks > 0 && desc.post_ops.ReadsDst()) {
    return "a sum cannot read the previous dst where that is a part of a wider tensor; "
           "give it an operand";
  }
  EltwisePlan p;
  p.desc = desc;
  p.kernels = &EltwiseKernelsFor(isa);
  p.blocks = (desc.channels + kBlock - 1) / kBlock;
  p.segment_floats = desc.pixels * (desc.blocked ? kBlock : desc.channels);
  const auto gap = [&](int64_t image_blocks) {
    return image_blocks > 0 ? (image_blocks - p.blocks) * p.segment_floats : 0;
  };
  p.src_gap = gap(desc.src_image_blocks);
  p.dst_gap = gap(desc.dst_image_blocks);
  p.total_floats = desc.n * (desc.blocked ? p.blocks : 1) * p.segment_floats;
  p.task_floats = p.total_floats <= kInlineFloats
                      ? std::max(kBlock, (p.total_floats + kBlock - 1) / kBlock * kBlock)
                      : kTaskFloats;
  p.tasks = (p.total_floats + p.task_floats - 1) / p.task_floats;
  *plan = p;
  return "";
}

}  // namespace bd
