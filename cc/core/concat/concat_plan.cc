#include <algorithm>

#include "cc/base/size.h"
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
  const std::vector<TensorView>& srcs = plan->desc.srcs;
  for (size_t i = 0; i < srcs.size(); ++i) {
    const ChannelRange range = plan->desc.range(i);
    const int64_t end = range.first + range.count;
    for (int64_t c = range.first, count; c < end; c += count) {
      count = std::min({16 - c % 16, 16 - at % 16, end - c});
      add(static_cast<int>(i), c, count);
    }
  }
  if (at % 16 != 0) add(-1, 0, 16 - at % 16);
  plan->first_run.push_back(plan->runs.size());
}

std::string CheckTensor(const TensorView& view) {
  if (view.blocked() && view.lanes() == 16) return "";
  return "concat joins blocks of 16 channels, got " + view.ToString();
}

// Equal apart from their channels.
bool SameElsewhere(const TensorView& src, const TensorView& dst) {
  Dims dims = src.dims();
  dims[kC] = dst.c();
  return src.dtype() == dst.dtype() && src.layout() == dst.layout() && dims == dst.dims();
}

std::string Check(const ConcatDesc& desc) {
  if (desc.srcs.empty()) return "concat needs at least one input";
  if (!desc.ranges.empty() && desc.ranges.size() != desc.srcs.size()) {
    return std::to_string(desc.ranges.size()) + " ranges of channels for " +
           std::to_string(desc.srcs.size()) + " inputs";
  }
  if (!desc.src_quantizations.empty() && desc.src_quantizations.size() != desc.srcs.size()) {
    return std::to_string(desc.src_quantizations.size()) + " quantizations for " +
           std::to_string(desc.srcs.size()) + " inputs";
  }
  std::string error = CheckTensor(desc.dst);
  if (error.empty() && desc.dst.blocks() > Size::kMostEntries)
    error = desc.dst.ToString() + " is too large";
  int64_t channels = 0;
  for (size_t i = 0; i < desc.srcs.size(); ++i) {
    const TensorView& src = desc.srcs[i];
    const ChannelRange range = desc.range(i);
    if (error.empty()) error = CheckTensor(src);
    if (error.empty() && !SameElsewhere(src, desc.dst)) {
      error = src.ToString() + " does not fit into " + desc.dst.ToString();
    }
    if (error.empty() &&
        (range.first < 0 || range.count < 0 || range.first > src.c() - range.count)) {
      error = "channels from " + std::to_string(range.first) + " on, " +
              std::to_string(range.count) + " of them, are not all in " + src.ToString();
    }
    channels += range.count;
  }
  if (error.empty() && channels != desc.dst.c()) {
    error =
        "inputs of " + std::to_string(channels) + " channels do not make " + desc.dst.ToString();
  }
  return error;
}

}  // namespace

std::string MakeConcatPlan(const ConcatDesc& desc, Isa isa, ConcatPlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  ConcatPlan p;
  p.desc = desc;
  ListRuns(&p);
  p.kernels = &ConcatKernelsFor(isa);
  p.isa = isa;

  const int64_t pixels = desc.dst.pixels();
  p.chunk = std::max<int64_t>(1, std::min(pixels, kTaskPixels));
  p.chunks = (pixels + p.chunk - 1) / p.chunk;
  const int64_t units = desc.dst.n() * desc.dst.blocks() * p.chunks;
  p.units_per_task =
      units * p.chunk < 2 * kTaskPixels ? std::max<int64_t>(1, units) : kTaskPixels / p.chunk;
  p.tasks = (units + p.units_per_task - 1) / p.units_per_task;
  *plan = p;
  return "";
}

}  // namespace bd
