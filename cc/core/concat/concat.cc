#include "cc/core/concat/concat.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cc/base/bytes.h"
#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/reorder/float_slice.h"

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

// Equal but for their channels.
bool SameElsewhere(const TensorView& src, const TensorView& dst) {
  Dims dims = src.dims();
  dims[kC] = dst.c();
  return src.dtype() == dst.dtype() && src.layout() == dst.layout() && dims == dst.dims();
}

std::string Check(const ConcatDesc& desc) {
  if (desc.srcs.empty()) return "concat needs at least one input";
  if (!desc.ranges.empty() && desc.ranges.size() != desc.srcs.size()) {
    return StrCat(desc.ranges.size(), " ranges of channels for ", desc.srcs.size(), " inputs");
  }
  if (!desc.src_quantizations.empty() && desc.src_quantizations.size() != desc.srcs.size()) {
    return StrCat(desc.src_quantizations.size(), " quantizations for ", desc.srcs.size(),
                  " inputs");
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
      error = StrCat("channels from ", range.first, " on, ", range.count,
                     " of them, are not all in ", src.ToString());
    }
    channels += range.count;
  }
  if (error.empty() && channels != desc.dst.c()) {
    error =
        "inputs of " + std::to_string(channels) + " channels do not make " + desc.dst.ToString();
  }
  return error;
}

constexpr float kZeros[16] = {};

// The runs of a block as bytes: other types than float32, and integers that stand for other numbers
// than those of dst.
void AssembleBytes(const ConcatPlan& plan, const ConcatRun* runs, int num_runs, int64_t pixels,
                   const char* const* sources, char* dst) {
  constexpr int64_t kPixels = kSliceFloats / 16;  // of a slice
  const ElementType to = plan.desc.dst_type();
  const int64_t bytes = SizeOf(to.dtype);
  alignas(64) char converted[kSliceFloats * sizeof(float)];
  for (int r = 0; r < num_runs; ++r) {
    const ConcatRun& run = runs[r];
    for (int64_t first = 0; first < pixels; first += kPixels) {
      const int64_t count = std::min(kPixels, pixels - first);
      char* out = dst + (first * 16 + run.dst_lane) * bytes;
      if (run.input < 0) {
        for (int64_t p = 0; p < count; ++p, out += 16 * bytes) {
          std::memset(out, to.quantization.zero_point, run.count * bytes);
        }
        continue;
      }
      const char* src = sources[r] + first * 16 * bytes;
      const ElementType from = plan.desc.src_type(run.input);
      if (run.count == 16) {  // whole pixels, which lie alike
        ConvertSlice(plan.isa, from, src, to, out, count * 16);
        continue;
      }
      if (from != to) {
        ConvertSlice(plan.isa, from, src, to, converted, count * 16);
        src = converted;
      }
      src += run.src_lane * bytes;
      for (int64_t p = 0; p < count; ++p, out += 16 * bytes, src += 16 * bytes) {
        std::memcpy(out, src, run.count * bytes);
      }
    }
  }
}

// Pixels [begin, begin + pixels) of block b of image n.
void RunUnit(const ConcatPlan& plan, const float* const* srcs, int64_t n, int64_t b, int64_t begin,
             int64_t pixels, void* all_dst) {
  const ConcatRun* runs = &plan.runs[plan.first_run[b]];
  const int num_runs = static_cast<int>(plan.first_run[b + 1] - plan.first_run[b]);
  char* const dst_bytes = static_cast<char*>(all_dst) + plan.desc.dst.byte_offset(n, b, begin);
  const char* sources[17];  // a block has at most 16 runs, and zeros
  bool same = true;         // all stand for numbers as dst does
  for (int r = 0; r < num_runs; ++r) {
    const ConcatRun& run = runs[r];
    if (run.input < 0) continue;
    sources[r] = As<const char>(srcs[run.input]) +
                 plan.desc.srcs[run.input].byte_offset(n, run.src_block, begin);
    same = same && plan.desc.src_type(run.input) == plan.desc.dst_type();
  }

  // One run from lane 0, of 16 lanes or up to the tail of src, which is zero as that of dst.
  const bool to_tail = runs[0].input >= 0 && num_runs == 2 && runs[1].input < 0 &&
                       runs[0].count == plan.desc.srcs[runs[0].input].lanes_of(runs[0].src_block);
  if (same && runs[0].src_lane == 0 && (num_runs == 1 || to_tail)) {
    std::memcpy(dst_bytes, sources[0], pixels * 16 * SizeOf(plan.desc.dst.dtype()));
    return;
  }
  if (plan.desc.dst.dtype() != DataType::f32) {
    return AssembleBytes(plan, runs, num_runs, pixels, sources, dst_bytes);
  }
  float* const dst = As<float>(dst_bytes);
  const auto source = [&](const ConcatRun& run) { return As<const float>(sources[&run - runs]); };
  LaneRun lanes[16];
  for (int r = 0; r < num_runs; ++r) {
    const ConcatRun& run = runs[r];
    const bool zeros = run.input < 0;
    lanes[r] = {zeros ? kZeros : source(run) + run.src_lane, zeros ? 0 : 16, run.dst_lane,
                run.count};
  }
  plan.kernels->assemble(lanes, num_runs, pixels, dst);
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
  p.chunks = CeilDiv(pixels, p.chunk);
  const int64_t units = desc.dst.n() * desc.dst.blocks() * p.chunks;
  p.tasks = units * p.chunk < 2 * kTaskPixels ? 1 : CeilDiv(units, kTaskPixels / p.chunk);
  *plan = std::move(p);
  return "";
}

void RunConcat(const ConcatPlan& plan, const float* const* srcs, void* dst, ThreadPool& pool) {
  const TensorView& view = plan.desc.dst;
  const int64_t units = view.n() * view.blocks() * plan.chunks;
  pool.ForRanges(units, plan.tasks, [&](int64_t first, int64_t last, int) {
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t block = unit / plan.chunks, begin = unit % plan.chunks * plan.chunk;
      RunUnit(plan, srcs, block / view.blocks(), block % view.blocks(), begin,
              std::min(plan.chunk, view.pixels() - begin), dst);
    }
  });
}

}  // namespace bd
