// Winograd over blocks of tiles, in three stages:
//
//   1. source   V[xi][icb][tile][16] = B^T d B       a task an icb and tile row
//   2. multiply M[xi][ocb][tile][16] = U[xi] V[xi]   a task a plane xi
//   3. dst      y = A^T M A, epilogue                a task an ocb and tile row
//
// With few output channels and many tiles each thread runs all stages on blocks
// of its own, V and M in its L2. Where the transformed weights U are the larger
// traffic, threads share a block, so that U is read once a call.
#include <algorithm>

#include "cc/core/conv/conv_winograd.h"
#include "cc/core/conv/conv_winograd_kernel.h"

namespace bd {
namespace {

struct TileBlock {
  const ConvRun& run;
  const WinogradKernels& kernels;
  int64_t first, count;  // of the tiles of all images, row by row
  float* v;
  float* m;

  const ConvPlan& plan() const { return run.plan; }
  int64_t planes() const {
    const int64_t alpha = plan().packing.winograd_m + 2;
    return alpha * alpha;
  }
  int which() const { return plan().packing.winograd_m == 4; }

  // Calls row(n, tile row, tile column, tiles, first tile in the block) for each
  // run of tiles of one tile row.
  template <typename Fn>
  void ForRows(Fn&& row) const {
    const int64_t width = plan().tiles_w, per_image = plan().tiles_h * width;
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
    const int64_t m_size = plan().packing.winograd_m;
    WinogradSourceArgs a;
    a.ih = d.ih;
    a.iw = d.iw;
    a.plane_stride = plan().icb * plan().tile_block * kBlock;
    ForRows([&](int64_t n, int64_t row, int64_t column, int64_t tiles, int64_t at) {
      a.src = run.buffers.src + (n * plan().icb + icb) * d.ih * d.iw * kBlock;
      a.y = row * m_size - d.pad_top;
      a.x = column * m_size - d.pad_left;
      a.tiles = tiles;
      a.dst = v + (icb * plan().tile_block + at) * kBlock;
      kernels.source[which()](a);
    });
  }

  void Multiply(int64_t xi) const {
    const ConvDesc& d = run.d;
    TileArgs a = {};
    a.tap_offsets = plan().tap_offsets.data();
    a.tap_length = kBlock;
    a.px_stride = kBlock;
    a.tail_taps = d.ic % kBlock != 0;
    a.taps = plan().icb - a.tail_taps;
    a.tail_length = d.ic % kBlock;
    a.dst_block_stride = plan().tile_block * kBlock;
    const float* u = run.buffers.packed + xi * (plan().packed_floats / planes());
    const float* src = v + xi * plan().icb * plan().tile_block * kBlock;
    for (const OutputGroup& g : plan().groups) {
      a.weights = u + g.weights_offset;
      const float* next = a.weights + d.ic * g.blocks * kBlock;
      float* dst = m + (xi * plan().ocb + g.first_block) * a.dst_block_stride;
      ForTiles(count, run.kernels.tile_pixels, [&](int64_t p, int64_t px) {
        a.src = src + p * kBlock;
        a.dst = dst + p * kBlock;
        a.prefetch = p + px == count ? next : a.weights;
        run.kernels.tile[g.blocks - 1][px - 1](a);
      });
    }
  }

  void Dst(int64_t ocb) const {
    const ConvDesc& d = run.d;
    const int64_t m_size = plan().packing.winograd_m;
    WinogradDstArgs a;
    a.oh = d.oh;
    a.ow = d.ow;
    a.plane_stride = plan().ocb * plan().tile_block * kBlock;
    ForRows([&](int64_t n, int64_t row, int64_t column, int64_t tiles, int64_t at) {
      const int64_t base = (n * plan().ocb + ocb) * d.oh * d.ow * kBlock;
      a.src = m + (ocb * plan().tile_block + at) * kBlock;
      a.dst = run.buffers.dst + base;
      a.y = row * m_size;
      a.x = column * m_size;
      a.tiles = tiles;
      TileEpilogue& e = a.epilogue;
      e = run.epilogue;
      e.bias = run.bias != nullptr ? run.bias + ocb * kBlock : nullptr;
      if (run.sum != nullptr) {
        e.acc_in = run.sum + base;
        e.acc_scale = plan().epilogue.sum_scale;
      }
      e.dst_offset = base;
      e.channel = ocb * kBlock;
      e.sample_channel = (n * plan().ocb + ocb) * kBlock;
      e.valid_lanes = static_cast<int32_t>(std::min(kBlock, d.oc - ocb * kBlock));
      kernels.dst[which()](a);
    });
  }
};

}  // namespace

void RunWinograd(const ConvRun& run, ThreadPool& pool) {
  const ConvPlan& plan = run.plan;
  const int64_t tiles = run.d.n * plan.tiles_h * plan.tiles_w;
  const int64_t blocks = (tiles + plan.tile_block - 1) / plan.tile_block;
  const int64_t alpha = plan.packing.winograd_m + 2;
  const int64_t v_floats = alpha * alpha * plan.icb * plan.tile_block * kBlock;
  auto block_at = [&](int64_t i, float* scratch) {
    const int64_t first = i * plan.tile_block;
    return TileBlock{run,     WinogradKernelsFor(plan.isa),
                     first,   std::min(plan.tile_block, tiles - first),
                     scratch, scratch + v_floats};
  };
  if (!plan.by_stage) {
    return pool.ParallelFor(blocks, [&](int64_t i, int thread) {
      const TileBlock block = block_at(i, run.Strip(thread));
      for (int64_t b = 0; b < plan.icb; ++b) block.Source(b);
      for (int64_t xi = 0; xi < block.planes(); ++xi) block.Multiply(xi);
      for (int64_t b = 0; b < plan.ocb; ++b) block.Dst(b);
    });
  }
  for (int64_t i = 0; i < blocks; ++i) {
    const TileBlock block = block_at(i, run.Strip(0));
    pool.ParallelFor(plan.icb, [&](int64_t b, int) { block.Source(b); });
    pool.ParallelFor(block.planes(), [&](int64_t xi, int) { block.Multiply(xi); });
    pool.ParallelFor(plan.ocb, [&](int64_t b, int) { block.Dst(b); });
  }
}

}  // namespace bd
