// Winograd over blocks of tiles. A task is a block times a range of output groups;
// it runs three stages on memory of its own, so that tasks never wait for each other (the
// first one once, however many ranges of groups follow):
//
//   1. source   V[icb][xi][tile][16] = B^T d B
//   2. multiply M[ocb][xi][tile][16] = U[xi] V[xi]
//   3. dst      y = A^T M A, maxima where dst is pooled, epilogue
//
// Of bytes V has words, [icb][xi][tile][16 words], and there is an M for each range of channels. Of
// bfloat16 V may have bfloat16.
//
// The planes xi of one channel block lie together: a transform writes or reads all
// of them at once, and with [xi][icb] each would be a page, and in some shapes a
// cache set, of its own (the source stage then had 4 of 10 samples of 28x28x128).
#include <algorithm>

#include "cc/base/threads/parallel_units.h"
#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/conv/winograd/winograd_kernel.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

// Tasks a thread, up to which threads take groups of each other's tasks.
constexpr int64_t kSharedTasks = 4;

// The tiles of a block as rows of A for RunPanels.
struct PlaneRows {
  const float* src;
  int64_t pixel;  // dwords of a row
  const EvenTiles& even;

  void Start(int64_t) {}
  int64_t tiles() const { return even.count; }
  template <typename Emit>
  void ForEach(TileArgs*, Emit&& emit) const {
    even.ForRuns([&](int64_t first, int64_t px, int64_t tiles) {
      emit(src + first * pixel, first, px, tiles);
    });
  }
};

struct TileBlock {
  const ConvRun& run;
  const WinogradPlan& p;
  const WinogradKernels& kernels;
  int64_t first, count;  // of the tiles of all images, row by row
  int64_t group_begin, group_end;
  EvenTiles even;  // in which they are multiplied
  float* v;
  float* m;  // from the first block of group_begin on

  const WinogradTransform& transform() const { return p.transform(); }
  int64_t planes() const { return transform().planes(); }
  // Of src, each of which becomes one of V or one for each phase.
  int64_t source_blocks() const {
    return transform().split_phases() ? p.icb / transform().phases() : p.icb;
  }
  // Blocks of V that plane xi has.
  PhaseRange BlocksOf(int64_t xi) const {
    if (!transform().split_phases()) return {0, p.icb};
    const int alpha = transform().alpha_w(), plane = static_cast<int>(xi);
    const auto [begin, end] = PhasesOfPlane(plane / alpha, plane % alpha);
    return {begin * source_blocks(), end * source_blocks()};
  }
  int64_t plane_stride() const { return p.tile_pitch * kBlock; }
  int64_t block_stride() const { return planes() * plane_stride(); }
  // Of V.
  int64_t pixel() const { return p.Dwords(kBlock); }
  int64_t v_plane_stride() const { return p.tile_pitch * pixel(); }
  // After the planes of packed weights of bytes: sums of the weights of each dst channel, and how
  // many ranges the source channels have.
  const int32_t* weight_sums() const {
    return As<const int32_t>(run.buffers.packed + planes() * p.plane_dwords);
  }
  // Packed weights may come from a file, and memory is for so many ranges.
  int64_t ranges() const {
    return p.bytes() ? std::clamp<int64_t>(weight_sums()[run.plan.ocb * kBlock], 1, p.most_ranges)
                     : 1;
  }
  int64_t range_distance() const { return (end_ocb() - first_ocb()) * block_stride(); }
  int64_t first_ocb() const { return p.groups[group_begin].first_block; }
  int64_t end_ocb() const {
    const OutputGroup& last = p.groups[group_end - 1];
    return last.first_block + last.blocks;
  }

  // Calls row(n, tile row, tile column, tiles, first tile in the block) for each
  // run of tiles of one tile row.
  template <typename Fn>
  void ForRows(Fn&& row) const {
    const int64_t width = p.tiles_w, per_image = p.tiles_h * width;
    for (int64_t t = first; t < first + count;) {
      const int64_t in_image = t % per_image;
      const int64_t column = in_image % width;
      const int64_t tiles = std::min(width - column, first + count - t);
      row(t / per_image, in_image / width, column, tiles, t - first);
      t += tiles;
    }
  }

  void Source(int64_t icb) const {
    const ConvDesc& d = run.d;
    WinogradSourceArgs a;
    a.ih = d.ih();
    a.iw = d.iw();
    a.ic = d.ic();
    a.plane_stride = v_plane_stride();
    a.phase_stride = source_blocks() * planes() * v_plane_stride();
    a.zero = p.bytes() ? static_cast<uint8_t>(d.types.src_quantization.zero_point) : 0;
    const auto kernel = p.bytes()           ? WinogradBytesKernelsFor(run.plan.isa).source
                        : p.bf16()          ? kernels.source_rounded[p.row]
                        : d.low_precision() ? kernels.source_bf16[p.row]
                                            : kernels.source[p.row];
    ForRows([&](int64_t n, int64_t row, int64_t column, int64_t tiles, int64_t at) {
      a.src = d.src.channels_last()
                  ? BytesFrom(run.buffers.src, n * d.ih() * d.iw() * d.ic() * run.plan.src_bytes)
                  : run.SrcBlock(n, icb);
      a.y = row * transform().mh * d.sh() - d.pad_top();
      a.x = column * transform().mw * d.sw() - d.pad_left();
      a.tiles = tiles;
      a.dst = v + icb * planes() * v_plane_stride() + at * pixel();
      kernel(a);
    });
  }

  int64_t whole_blocks() const { return p.channels / kBlock; }

  void PreparePairs(int thread) const {
    FipSource a = {v, v, p.tap_offsets.data(), whole_blocks(), p.icb, count};
    a.planes = planes();
    a.plane_stride = plane_stride();
    p.pairs.Prepare(run.plan.isa, run.scratch, thread, a);
  }

  // Of blocks [begin, end) of source channels to M of `range`.
  void Multiply(int64_t xi, int64_t range, int64_t begin, int64_t end, int thread) const {
    const int64_t u_stride = p.plane_dwords;
    const int64_t whole = std::min(end, whole_blocks());
    const float* src = v + xi * v_plane_stride();
    float* const sums = m + range * range_distance() + xi * plane_stride();
    PanelCall<OutputGroup> call;
    call.isa = run.plan.isa;
    call.family = p.family;
    call.panels = p.groups.list.data();
    call.begin = group_begin;
    call.end = group_end;
    call.packed = run.buffers.packed + xi * u_stride;
    call.first_row = begin * pixel();
    call.tap_offsets = p.tap_offsets.data() + begin;
    call.tail_taps = end - whole;
    call.tail_length = p.Dwords(p.channels % kBlock);
    call.taps = whole - begin;
    call.tap_length = call.px_stride = pixel();
    // The next plane's; where phases are split that may begin at others.
    call.ahead = call.Weights(group_begin, call.first_row) + u_stride;
    FipCall pairs;
    if (p.fip()) {
      pairs = p.pairs.Call(run.scratch, thread, xi);
      pairs.column_terms = call.packed + u_stride - run.plan.ocb * kBlock;
      pairs.unscale = pairs.column_terms - run.plan.ocb * kBlock;
      call.pairs = &pairs;
    }
    const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
      const OutputGroup& group = p.groups[g];
      a->dst = sums + (group.first_block - first_ocb()) * block_stride();
      a->epilogue.dst_block_stride = block_stride();
      a->epilogue.valid_lanes = kBlock;
    };
    RunPanels(call, bind, PlaneRows{src, pixel(), even});
  }

  void Dst() const {
    const auto of_blocks = [&](int64_t begin, int64_t end) {
      ForRows([&](int64_t n, int64_t row, int64_t column, int64_t tiles, int64_t at) {
        for (int64_t b = begin; b < end; ++b) DstRun(b, n, row, column, tiles, at);
      });
    };
    // The blocks of a plain dst share cache lines and pages.
    if (run.d.dst.channels_last()) return of_blocks(first_ocb(), end_ocb());
    for (int64_t b = first_ocb(); b < end_ocb(); ++b) of_blocks(b, b + 1);
  }

  // Tiles of block `ocb` from one of tile row `row` on, which is tile `at` of this TileBlock.
  void DstRun(int64_t ocb, int64_t n, int64_t row, int64_t column, int64_t tiles,
              int64_t at) const {
    const ConvDesc& d = run.d;
    WinogradDstArgs a;
    a.plane_stride = plane_stride();
    a.src = m + (ocb - first_ocb()) * block_stride() + at * kBlock;
    a.h = d.dst_h();
    a.w = d.dst_w();
    a.y = row * (transform().mh / d.pool_h);
    a.x = column * (transform().mw / d.pool_w);
    a.tiles = tiles;
    if (d.dst.channels_last()) {
      a.epilogue = PlainEpilogue(run, ocb, 1, n, 0);
      a.dst = BytesFrom(run.buffers.dst, a.epilogue.dst_offset * run.plan.tensors.dst_bytes);
    } else {
      a.epilogue = BlocksEpilogue(run, ocb, 1, n, 0);
      a.dst = run.DstBlock(n, ocb);
    }
    if (!p.bytes()) return (d.pooled() ? kernels.dst_max : kernels.dst)[p.row](a);
    constexpr int32_t kMiddle = 128;  // of the bytes in V
    const int64_t channel = ocb * kBlock;
    const Quantization& q = d.types.src_quantization;
    Int8Columns columns;
    columns.Bind({q.scale, q.zero_point - kMiddle}, weight_sums() + channel,
                 run.buffers.weight_scales + channel, d.oc() - channel, kBlock);
    a.ranges = ranges();
    a.distance = range_distance();
    a.start = columns.start;
    a.epilogue.scale = columns.scale;
    WinogradBytesKernelsFor(run.plan.isa).dst(a);
  }
};

}  // namespace

void RunWinograd(const ConvRun& run, ThreadPool& pool) {
  const ConvPlan& plan = run.plan;
  const WinogradPlan& p = plan.Own<WinogradPlan>();
  const int64_t tiles = run.d.n() * p.tiles_h * p.tiles_w;
  const int64_t groups = p.groups.size();
  const WinogradKernels& kernels = WinogradKernelsFor(plan.isa);
  const auto first_group = [&](int64_t task) {
    return groups * (task % p.group_splits) / p.group_splits;
  };
  const auto end_group = [&](int64_t task) {
    return groups * (task % p.group_splits + 1) / p.group_splits;
  };
  const auto block_of = [&](int64_t task, int64_t group_begin, int64_t group_end, int thread) {
    const int64_t first = task / p.group_splits * p.tile_block;
    const int64_t count = std::min(p.tile_block, tiles - first);
    const EvenTiles even(count, TilePixels(plan.isa, p.family, 1));
    float* const v = run.scratch.Grant(p.strip, thread);
    TileBlock block{run, p, kernels, first, count, group_begin, group_end, even, v, nullptr};
    block.m = v + p.icb * block.planes() * block.v_plane_stride();
    return block;
  };
  // Groups that a thread takes at once: where tasks are few, 4/5 and the rest (ResNet-50 in
  // quiet minutes: 1 % more; with 6/9, 2/9 and 1/9 3.5).
  const bool shared = plan.tasks <= kSharedTasks * plan.threads;
  const double fraction = shared ? 0.8 : 1;
  const int64_t least = shared ? CeilDiv(CeilDiv(groups, p.group_splits), 5) : groups;
  ParallelUnits(pool, plan.tasks, [&](UnitTaker& taker) {
    const int thread = taker.thread();
    int64_t prepared = -1;  // the first of the tiles that the thread has in V
    const auto run_pass = [&](int64_t task, int64_t begin, int64_t end) {
      const TileBlock block = block_of(task, begin, end, thread);
      if (prepared != block.first) {
        for (int64_t b = 0; b < block.source_blocks(); ++b) block.Source(b);
        if (p.fip()) block.PreparePairs(thread);
        prepared = block.first;
      }
      const int64_t ranges = block.ranges(), length = CeilDiv(p.icb, ranges);
      for (int64_t xi = 0; xi < block.planes(); ++xi) {
        const PhaseRange of_plane = block.BlocksOf(xi);
        for (int64_t r = 0, b = of_plane.begin; b < of_plane.end; ++r, b += length) {
          block.Multiply(xi, r, b, std::min(of_plane.end, b + length), thread);
        }
      }
      block.Dst();
    };
    const auto run_groups = [&](const Units& u) {
      const int64_t first = first_group(u.task);
      for (int64_t g = u.begin; g < u.end; g += p.pass_groups) {
        run_pass(u.task, first + g, first + std::min(g + p.pass_groups, u.end));
      }
    };
    for (int64_t task; taker.NextTask(&task);) {
      taker.Publish(end_group(task) - first_group(task));
      for (Units u; taker.Next(fraction, least, &u);) run_groups(u);
    }
    for (Units u; taker.Steal(fraction, least, &u);) run_groups(u);
  });
}

}  // namespace bd
