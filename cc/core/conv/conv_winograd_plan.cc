// When Winograd pays, and in which tasks it runs.
#include <algorithm>
#include <limits>

#include "cc/base/caches.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_winograd.h"

namespace bd {
namespace {

// Measured constants, in cycles of one core as those of kWinogradTransforms. A
// multiply-add of 16 channels is one.
constexpr double kMultiplyOverhead = 1.06;  // starting and storing register tiles
constexpr double kDirectOverhead = 1.05;    // the same with longer sums, and strips
constexpr double kForkJoin = 4000;          // wake-up, last tile
// A task's memory V and M: free in L2, and beyond it so many cycles a line.
constexpr double kLineBeyondL2 = 5;
// The same beyond a core's usual share of L3, on top: such lines come from memory, and the pages of
// so much scratch, if TensorFlow allocates it, from the system in every call.
constexpr double kLineBeyondL3 = 10, kL3Bytes = 4 << 20;
// src and dst beyond which tasks ask for their lines ahead; these need half of L2. Not of one that
// V, M and the weights fill as it is (512 KB, Zen 3, AVX2: 64->64 at 224x224 7480 and 6600 us
// without, 128->128 at 112x112 5950 and 5670).
constexpr int64_t kAheadBytes = 8 << 20, kAheadL2Bytes = 1 << 20;
// A line of weights in a task: mostly hidden behind multiply-adds.
constexpr double kWeightsLine = 1;
// Weights come from memory once a call, however many tasks read them: a 64-byte
// line takes 9.2 cycles for one thread (26 GB/s) and 6.3 where more of them pull
// (38 GB/s).
constexpr double kLineOneThread = 9.2, kLineShared = 6.3;

// What kAutoSmall allows packed weights, in plain ones.
constexpr int kSmallGrowth = 2;

bool Applies(const WinogradTransform& t, const ConvDesc& d) {
  const bool fits = t.stride == 1 ? d.src_layout == Layout::nChw16c
                                  : d.src_layout == Layout::nhwc && d.ic * t.phases() <= kBlock;
  return fits && d.kh == t.kh && d.kw == t.kw && d.sh == t.stride && d.sw == t.stride &&
         d.dh == 1 && d.dw == 1 && d.groups == 1 && d.dst_layout == Layout::nChw16c;
}

int64_t CountTiles(const ConvDesc& d, const WinogradTransform& t) {
  return d.n * CeilDiv(d.oh, t.mh) * CeilDiv(d.ow, t.mw);
}

double StreamCycles(int64_t weights, int threads) {
  return weights / 16 * std::max(kLineOneThread / threads, kLineShared);
}

bool AsksAhead(const ConvDesc& d) {
  const int64_t src = d.ih * d.iw * CeilDiv(d.ic, kBlock);
  const int64_t dst = d.oh * d.ow * CeilDiv(d.oc, kBlock);
  return L2CacheBytes() >= kAheadL2Bytes && 64 * d.n * (src + dst) > kAheadBytes;
}

double MultiplyCycles(const ConvDesc& d, ConvForm form, Isa isa) {
  return ChoosePaired(d, form, isa) ? kPairedCycles : 1;
}

struct TaskSplit {
  int64_t tile_block = 1, group_splits = 1;
  double cycles = std::numeric_limits<double>::infinity();
};

// The tasks with the shortest estimated time of the busiest thread.
TaskSplit ChooseTasks(const ConvDesc& d, const WinogradTransform& transform, Isa isa, int threads) {
  const GemmKernels& kernels = GemmKernelsFor(isa);
  const int64_t planes = transform.planes(), tiles = CountTiles(d, transform);
  const int64_t channels = d.ic * transform.phases();
  const int64_t icb = CeilDiv(channels, kBlock), ocb = CeilDiv(d.oc, kBlock);
  const int64_t groups = CeilDiv(ocb, kernels.tile_blocks);
  const double multiply = MultiplyCycles(d, ConvForm::kWinograd, isa);
  const int64_t free_bytes = AsksAhead(d) ? L2CacheBytes() / 2 : L2CacheBytes();
  TaskSplit best;
  for (int64_t splits = 1; splits <= std::min<int64_t>(groups, 8 * threads); splits *= 2) {
    const int64_t blocks_of_task = std::min(ocb, CeilDiv(groups, splits) * kernels.tile_blocks);
    const double weights = planes * channels * blocks_of_task;  // lines
    for (int64_t count = 1; count <= tiles; count += 1 + count / 8) {
      const int64_t per = CeilDiv(tiles, count);
      const double bytes = 64.0 * planes * per * (icb + blocks_of_task);
      const double task = kMultiplyOverhead * multiply * weights * per + kWeightsLine * weights +
                          per * (icb * transform.source + blocks_of_task * transform.dst) +
                          std::max(0., bytes - free_bytes) / 64 * kLineBeyondL2 +
                          std::max(0., bytes - kL3Bytes) / 64 * kLineBeyondL3 + kForkJoin;
      const double cycles = CeilDiv(CeilDiv(tiles, per) * splits, threads) * task;
      if (cycles < best.cycles) best = {per, splits, cycles};
    }
  }
  best.cycles = std::max(best.cycles, StreamCycles(planes * channels * ocb * kBlock, threads));
  return best;
}

double DirectCycles(const ConvDesc& d, Isa isa, int threads) {
  const int64_t weights = d.kh * d.kw * d.ic * CeilDiv(d.oc, kBlock) * kBlock;
  const double pixels = static_cast<double>(d.n) * d.oh * d.ow;
  const double multiply = MultiplyCycles(d, ConvForm::kTile, isa);
  return std::max(kDirectOverhead * multiply * pixels * weights / kBlock / threads,
                  StreamCycles(weights, threads)) +
         kForkJoin;
}

}  // namespace

int ChooseWinograd(const ConvDesc& desc, Isa isa, int threads) {
  if (desc.algorithm == ConvAlgorithm::kDirect) return kNoWinograd;
  int best = kNoWinograd;
  double best_cycles = std::numeric_limits<double>::infinity();
  for (int row = 0; row < kNumWinogradTransforms; ++row) {
    const WinogradTransform& t = kWinogradTransforms[row];
    const bool small = t.planes() * t.phases() <= kSmallGrowth * t.kh * t.kw;
    if (!Applies(t, desc) || (desc.pooled() && !t.holds_windows()) ||
        (desc.algorithm == ConvAlgorithm::kAutoSmall && !small))
      continue;
    const double cycles = ChooseTasks(desc, t, isa, threads).cycles;
    if (cycles < best_cycles) {
      best_cycles = cycles;
      best = row;
    }
  }
  // Of a pooled one the alternative is two ops, which the caller has compared.
  const bool asked_for = desc.algorithm == ConvAlgorithm::kWinograd || desc.pooled();
  return asked_for || best_cycles < DirectCycles(desc, isa, threads) ? best : kNoWinograd;
}

bool CanPoolTiles(const ConvPlan& plan) {
  return plan.packing.form == ConvForm::kWinograd && TransformOf(plan.packing).holds_windows() &&
         !plan.epilogue.has_sum && plan.epilogue.rest.len() == 0;
}

void PlanWinograd(ConvPlan* plan) {
  ConvDesc d = plan->desc;
  if (plan->pools_tiles) {  // the last row and column may fill no window
    d.oh = d.dst_h() * d.pool_h;
    d.ow = d.dst_w() * d.pool_w;
  }
  const WinogradTransform& t = TransformOf(plan->packing);
  const int64_t planes = t.planes();
  const TaskSplit split = ChooseTasks(d, t, plan->isa, plan->threads);
  plan->tiles_h = CeilDiv(d.oh, t.mh);
  plan->tiles_w = CeilDiv(d.ow, t.mw);
  plan->asks_ahead = AsksAhead(d);
  plan->tile_block = split.tile_block;
  plan->tile_pitch = split.tile_block | 1;  // odd: planes spread over all cache sets
  plan->terms.count = plan->packing.paired ? planes * plan->tile_pitch : 0;
  plan->group_splits = split.group_splits;
  plan->tasks = CeilDiv(CountTiles(d, t), split.tile_block) * split.group_splits;
  const int64_t groups = CeilDiv(static_cast<int64_t>(plan->groups.size()), split.group_splits);
  const int64_t blocks = std::min(plan->ocb, groups * plan->packing.group_blocks);
  plan->strip.count = planes * plan->tile_pitch * kBlock * (plan->icb + blocks);
  for (int64_t b = 0; b < plan->icb; ++b) {
    plan->tap_offsets.push_back(b * planes * plan->tile_pitch * kBlock);
  }
}

}  // namespace bd
