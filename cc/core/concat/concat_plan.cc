#include <algorithm>

#include "cc/core/concat/concat.h"

namespace bd {
namespace {

// Pixels of a task: 64 KB of dst, about 10 us of work.
constexpr int64_t kTaskPixels = 1024;

// Cuts the channels of all inputs at the block borders of their src and of dst.
void ListRuns(ConcatPlan* plan) {
  int64_t at = 0;
  const auto add = [&](int input, int64_t c, int64_t count) {
    if (at % 16 == 0) plan->first_run.push_back(plan->runs.size());
    plan->runs.push_back({input, c / 16, static_cast<int32_t>(c % 16),
                          static_cast<int32_t>(at % 16), static_cast<int32_t>(count)});
    at += count;
  };
  const std::vector<int64_t>& channels = plan->desc.channels;
  for (size_t i = 0; i < channels.size(); ++i) {
    for (int64_t c = 0, count; c < channels[i]; c += count) {
      count = std::min({16 - c % 16, 16 - at % 16, channels[i] - c});
      add(static_cast<int>(i), c, count);
    }
  }
  if (at % 16 != 0) add(-1, 0, 16 - at % 16);
  plan->first_run.push_back(plan->runs.size());
}

}  // namespace

std::string MakeConcatPlan(const ConcatDesc& desc, Isa isa, ConcatPlan* plan) {
  ConcatPlan p;
  p.desc = desc;
  if (desc.channels.empty()) return "concat needs at least one input";
  if (desc.n < 0 || desc.pixels < 0) return "batch and spatial sizes must not be negative";
  for (int64_t c : desc.channels) {
    if (c < 0) return "channels must not be negative, got " + std::to_string(c);
    p.dst_channels += c;
  }
  p.blocks = (p.dst_channels + 15) / 16;
  ListRuns(&p);
  p.kernels = &ConcatKernelsFor(isa);

  p.chunk = std::max<int64_t>(1, std::min(desc.pixels, kTaskPixels));
  p.chunks = (desc.pixels + p.chunk - 1) / p.chunk;
  const int64_t units = desc.n * p.blocks * p.chunks;
  p.units_per_task =
      units * p.chunk < 2 * kTaskPixels ? std::max<int64_t>(1, units) : kTaskPixels / p.chunk;
  p.tasks = (units + p.units_per_task - 1) / p.units_per_task;
  *plan = p;
  return "";
}

}  // namespace bd
