// When Winograd pays, and in which tasks it runs.
#include <algorithm>
#include <limits>
#include <memory>

#include "cc/base/machine.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/conv/winograd/winograd_kernel.h"

namespace bd {
namespace {

// What kAutoSmall allows packed weights, in plain ones of float32.
constexpr int kSmallGrowth = 2;

// Plain results of so few channels are faster as dot products: 32->1 at 112x112 435 us against 642
// (Zen 3, two threads), 64->3 at 128x128 2100 against 1795.
constexpr int64_t kFewChannels = 2;

TileFamily FamilyOf(const WinogradTransform& t, const ConvDesc& d, Isa isa) {
  if (d.src.dtype() == DataType::u8) return TileFamily::kWordSums;
  if (d.low_precision() && t.rounds_planes() && MultipliesBfloat16(isa))
    return TileFamily::kBf16Sums;
  return UsesFip(d, true, isa) ? TileFamily::kFip : TileFamily::kBlocked;
}

// Cycles of a multiply-add, and of a tile's transforms: of low-precision planes measured as those
// of kWinogradTransforms. `unit`: of a multiply-add in direct sums, as which they count one of
// bytes.
struct Stages {
  double multiply, source, dst, unit;
};
Stages StagesOf(const WinogradTransform& t, TileFamily family, Isa isa) {
  constexpr double kBytesSource = 135, kBytesDst = 350, kBf16Source = 80, kBf16Dst = 80;
  switch (family) {
    case TileFamily::kWordSums:
      if (!MultipliesBytes(isa)) {
        return {kCpu.words_by_two, kBytesSource, kBytesDst, kCpu.words_by_two};
      }
      return {kCpu.words_multiply, kBytesSource, kBytesDst,
              isa >= Isa::kAvx512Amx ? kCpu.amx_bytes_multiply : kCpu.bytes_multiply};
    case TileFamily::kBf16Sums:
      if (t.split_phases()) return {Bf16Multiply(isa), t.source, t.dst, 1};
      return {Bf16Multiply(isa), kBf16Source, kBf16Dst, 1};
    default:
      return {family == TileFamily::kFip ? kCpu.fip_multiply : 1, t.source, t.dst, 1};
  }
}

int64_t ChannelsOf(const WinogradTransform& t, const ConvDesc& d) {
  return t.phases() * (t.split_phases() ? CeilDiv(d.ic(), kBlock) * kBlock : d.ic());
}

bool Fits(const WinogradTransform& t, const ConvDesc& d) {
  const bool fits = t.stride == 1 || t.split_phases()
                        ? d.src.blocked()
                        : d.src.channels_last() && d.ic() * t.phases() <= kBlock;
  return fits && d.kh() == t.kh && d.kw() == t.kw && d.sh() == t.stride && d.sw() == t.stride &&
         d.dh() == 1 && d.dw() == 1 && d.groups == 1 && (d.dst.blocked() || d.oc() > kFewChannels);
}

int64_t CountTiles(const ConvDesc& d, const WinogradTransform& t) {
  return d.n() * CeilDiv(d.oh(), t.mh) * CeilDiv(d.ow(), t.mw);
}

struct TaskSplit {
  int64_t tile_block = 1, group_splits = 1, pass_groups = 1;
  double cycles = std::numeric_limits<double>::infinity();
};

// The tasks with the shortest estimated time of the busiest thread.
TaskSplit ChooseTasks(const ConvDesc& d, const WinogradTransform& transform, Isa isa,
                      int most_threads) {
  const Machine& machine = ThisMachine();
  const GemmKernels& kernels = GemmKernelsFor(isa);
  const int64_t planes = transform.planes(), tiles = CountTiles(d, transform);
  const int64_t channels = ChannelsOf(transform, d);
  const int64_t icb = CeilDiv(channels, kBlock), ocb = CeilDiv(d.oc(), kBlock);
  const int64_t groups = CeilDiv(ocb, kernels.tile_blocks);
  const TileFamily family = FamilyOf(transform, d, isa);
  const Stages stages = StagesOf(transform, family, isa);
  const int threads = ThreadsFor(static_cast<double>(transform.products() * channels * ocb) /
                                     transform.phases() * stages.multiply * tiles,
                                 most_threads);
  const double v_bytes = 64.0 / PerDword(family);
  TaskSplit best;
  for (int64_t splits = 1; splits <= std::min<int64_t>(groups, 8 * threads); splits *= 2) {
    const int64_t groups_of_task = CeilDiv(groups, splits);
    const int64_t blocks_of_task = std::min(ocb, groups_of_task * kernels.tile_blocks);
    const double products =  // of vectors
        static_cast<double>(transform.products() * channels * blocks_of_task) / transform.phases();
    const double lines = products / PerDword(family);
    for (int64_t passes = 1; passes <= groups_of_task; passes *= 2) {
      const int64_t pass_groups = CeilDiv(groups_of_task, passes);
      const int64_t blocks_of_pass = std::min(ocb, pass_groups * kernels.tile_blocks);
      for (int64_t count = 1; count <= tiles; count += 1 + count / 8) {
        const int64_t per = CeilDiv(tiles, count);
        const double bytes = planes * per * (v_bytes * icb + 64.0 * blocks_of_pass);
        const double task = kCpu.planes_overhead * stages.multiply * products * per +
                            kCpu.planes_weights_line * lines +
                            (passes - 1) * planes * kCpu.panels_call +
                            per * (icb * stages.source + blocks_of_task * stages.dst) +
                            std::max(0., bytes - machine.l2_bytes) / 64 * machine.line_beyond_l2 +
                            std::max(0., bytes - machine.l3_bytes) / 64 * machine.line_beyond_l3 +
                            machine.fork_join;
        const int64_t tasks = CeilDiv(tiles, per) * splits;
        // The fork is in each task.
        const double more = std::max(0., BarrierOf(tasks, threads) - machine.barrier);
        const double cycles = CeilDiv(tasks, threads) * task + more;
        if (cycles < best.cycles) best = {per, splits, pass_groups, cycles};
      }
    }
  }
  return best;
}

bool PoolsTiles(const WinogradTransform& t, const ConvDesc& d) {
  const ConvEpilogue epilogue = MakeConvEpilogue(d, d.dst.blocked());
  return d.pool_h == 2 && d.pool_w == 2 && t.holds_windows() && !epilogue.has_sum &&
         epilogue.rest.len() == 0;
}

std::string Applies(const Algorithm& self, const ConvDesc& d, Isa isa) {
  const WinogradTransform& t = kWinogradTransforms[self.variant];
  if (d.algorithm == ConvAlgorithm::kDirect || d.algorithm == ConvAlgorithm::kFip ||
      d.algorithm == ConvAlgorithm::kAutoSmallest) {
    return "the algorithm asked for is another";
  }
  if (!Fits(t, d)) return "the window, its stride, groups or layouts are not the transform's";
  const bool bytes = d.src.dtype() == DataType::u8;
  if (bytes && self.variant != kBytesRow) return "bytes have exact sums, and this transform rounds";
  if (t.split_phases() && FamilyOf(t, d, isa) != TileFamily::kBf16Sums) {
    return "phases are split in bfloat16 with AVX512_BF16 alone";
  }
  if (d.pooled() && (bytes || t.split_phases() || !PoolsTiles(t, d))) {
    return "tiles do not hold the windows of the pooling, or the chain is more than a bias and a "
           "clamp, or src has bytes, or the stride is 2";
  }
  const int64_t dwords = t.planes() * CeilDiv(ChannelsOf(t, d), PerDword(FamilyOf(t, d, isa)));
  const bool small = dwords <= kSmallGrowth * t.kh * t.kw * d.ic();
  if (d.algorithm == ConvAlgorithm::kAutoSmall && !small) return "weights grow more than twofold";
  return "";
}

ConvCost Cost(const Algorithm& self, const ConvDesc& d, Isa isa, int threads) {
  const WinogradTransform& t = kWinogradTransforms[self.variant];
  const double weights = static_cast<double>(t.products() * d.ic()) * d.oc();
  const TileFamily family = FamilyOf(t, d, isa);
  const double line = kCpu.pack_winograd + (family == TileFamily::kFip ? kCpu.pack_pairs : 0);
  const double whole =
      static_cast<double>(t.products() * d.ic()) * CeilDiv(d.oc(), kBlock) * kBlock;
  // Each task counts the fork, which CyclesOf adds once.
  const double cycles = ChooseTasks(d, t, isa, threads).cycles - ThisMachine().fork_join;
  const double unit = StagesOf(t, family, isa).unit;
  return {cycles / unit, whole / static_cast<double>(PerDword(family)) / unit,
          PackCycles(d, weights, line, threads) / unit};
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  ConvDesc d = plan->desc;
  const auto own = std::make_shared<WinogradPlan>();
  WinogradPlan* p = own.get();
  plan->own = own;
  p->row = self.variant;
  const WinogradTransform& t = p->transform();
  const int64_t planes = t.planes(), channels = ChannelsOf(t, d);
  p->channels = channels;
  p->family = FamilyOf(t, d, plan->isa);
  p->groups = MakeOutputGroups(d, plan->isa, channels, 1, false, PerDword(p->family));
  p->icb = CeilDiv(channels, kBlock);
  const int64_t of_channels = plan->ocb * kBlock;
  p->plane_dwords = p->groups.packed_floats + (p->fip() ? 2 * of_channels : 0);  // scales and terms
  const int64_t trailer = p->bytes() ? of_channels + kBlock : 0;
  const int64_t kind = kNumWinogradTransforms * static_cast<int>(p->family) + p->row;
  plan->pack_key = {self.name, d.src.dtype(), p->groups.blocking() + 64 * kind};
  plan->packed_bytes = (planes * p->plane_dwords + trailer) * sizeof(float);
  plan->note = p->fip() ? " paired" : "";
  plan->epilogue = MakeConvEpilogue(d, /*sums_in_registers=*/true);
  if (plan->empty()) return;
  if (p->bytes()) p->most_ranges = CeilDiv(p->icb, kSafeBlocks);
  if (d.pooled()) {  // the last row and column may fill no window
    d.windows.h.out = d.dst_h() * d.pool_h;
    d.windows.w.out = d.dst_w() * d.pool_w;
  }
  const TaskSplit split = ChooseTasks(d, t, plan->isa, plan->threads);
  p->tiles_h = CeilDiv(d.oh(), t.mh);
  p->tiles_w = CeilDiv(d.ow(), t.mw);
  p->tile_block = split.tile_block;
  p->tile_pitch = split.tile_block | 1;  // odd: planes spread over all cache sets
  p->group_splits = split.group_splits;
  plan->tasks = CeilDiv(CountTiles(d, t), split.tile_block) * split.group_splits;
  p->pass_groups = split.pass_groups;
  const int64_t task_groups = CeilDiv(p->groups.size(), split.group_splits);
  const int64_t blocks = std::min(plan->ocb, p->pass_groups * p->groups.step);
  const int64_t unit =
      IsLowPrecision(p->family) ? sizeof(float) : 1;  // low-precision tiles count bytes
  for (int64_t b = 0; b < p->icb; ++b) {
    p->tap_offsets.push_back(b * planes * p->tile_pitch * p->Dwords(kBlock) * unit);
  }
  const int64_t of_tile = p->icb * p->Dwords(kBlock) + p->most_ranges * blocks * kBlock;
  p->strip = plan->scratch.Book<float>("strip", planes * p->tile_pitch * of_tile, plan->threads);
  if (p->fip()) p->pairs.Book(p->tile_block, planes, plan->threads, &plan->scratch);
  plan->blocking = {{"task_tiles", p->tile_block},
                    {"tile_pitch", p->tile_pitch},
                    {"task_blocks", task_groups * p->groups.widest_blocks},
                    {"pass_blocks", p->pass_groups * p->groups.widest_blocks}};
}

}  // namespace

const Algorithm kWinograd = {"winograd", 0, true, Applies, Cost, Plan, PackWinograd, RunWinograd};

}  // namespace bd
