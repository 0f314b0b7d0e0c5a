#include <algorithm>
#include <cstring>

#include "cc/core/shuffle/shuffle.h"

namespace bd {
namespace {

// Copies rows [first, last). The smaller factor of C changes fastest, so that what the
// prefetchers fetch beyond the end of an entry is needed soon.
void RunRows(const ShufflePlan& plan, const uint8_t* src, uint8_t* dst, int64_t first,
             int64_t last) {
  const ShuffleDesc& d = plan.desc;
  const int64_t bytes = d.inner * d.element_bytes;
  const int64_t groups = d.channels / d.group;
  for (int64_t row = first; row < last; ++row) {
    const int64_t k = row % d.channels;
    const int64_t c = d.group < groups ? k / d.group + k % d.group * groups : k;
    memcpy(dst + (row - k + c) * bytes, src + (row - k + d.SrcOf(c)) * bytes, bytes);
  }
}

void RunTile(const ShufflePlan& plan, const uint8_t* src, uint8_t* dst, int64_t unit) {
  const ShuffleProgram program = plan.program.view();
  const int64_t at_once = plan.program.rows_at_once, row_bytes = program.stride / at_once;
  const int64_t image = unit / plan.tiles * plan.image_bytes;
  const auto run = [&](int64_t row, int64_t times) {
    const int64_t at = image + row * row_bytes;
    plan.program.run(program, src + at, dst + at, times);
  };
  const int64_t whole = plan.rows / at_once * at_once;
  const int64_t first = unit % plan.tiles * plan.tile_rows;
  const int64_t last = std::min(whole, first + plan.tile_rows);
  run(first, (last - first) / at_once);
  // The rows that are left, together with some before them that are done twice.
  if (last == whole && whole < plan.rows) run(plan.rows - at_once, 1);
}

// Tile (image, u, v) of dst, an entry of dst being `copy`'s bytes.
template <typename CopyEntry>
void RunTransposeTile(const ShuffleDesc& d, const uint8_t* src, uint8_t* dst, int64_t unit,
                      CopyEntry copy) {
  const int64_t bytes = d.inner * d.element_bytes;
  const int64_t us = d.channels / d.group, vs = d.group;
  const int64_t u_tiles = CeilDiv(us, kTransposeTileU);
  const int64_t v_tiles = CeilDiv(vs, kTransposeTileV);
  const int64_t u0 = unit % u_tiles * kTransposeTileU, u1 = std::min(us, u0 + kTransposeTileU);
  const int64_t v0 = unit / u_tiles % v_tiles * kTransposeTileV;
  const int64_t v1 = std::min(vs, v0 + kTransposeTileV);
  const int64_t image = unit / u_tiles / v_tiles * d.channels * bytes;
  for (int64_t v = v0; v < v1; ++v) {
    for (int64_t u = u0; u < u1; ++u) {
      copy(dst + image + (u + v * us) * bytes, src + image + (u * vs + v) * bytes);
    }
  }
}

template <int kBytes>
struct CopyFixed {
  void operator()(uint8_t* dst, const uint8_t* src) const { memcpy(dst, src, kBytes); }
};

void RunTranspose(const ShuffleDesc& d, const uint8_t* src, uint8_t* dst, int64_t unit) {
  const int64_t bytes = d.inner * d.element_bytes;
  const auto run = [&](auto copy) { RunTransposeTile(d, src, dst, unit, copy); };
  switch (bytes) {
    case 1:
      return run(CopyFixed<1>());
    case 2:
      return run(CopyFixed<2>());
    case 4:
      return run(CopyFixed<4>());
    case 8:
      return run(CopyFixed<8>());
    default:
      return run([bytes](uint8_t* to, const uint8_t* from) { memcpy(to, from, bytes); });
  }
}

// Kernels write zeros into tails.
void FillTails(const ShuffleDesc& d, uint8_t* dst, ThreadPool& pool) {
  const int64_t lanes = d.channels % d.block, blocks = d.num_blocks();
  pool.ParallelFor(d.outer, [&](int64_t image, int) {
    uint8_t* block = dst + ((image + 1) * blocks - 1) * d.inner * d.block;
    for (int64_t at = 0; at < d.inner * d.block; at += d.block) {
      memset(block + at + lanes, d.tail, d.block - lanes);
    }
  });
}

}  // namespace

void RunShuffle(const ShufflePlan& plan, const void* src_data, void* dst_data, ThreadPool& pool) {
  const auto* src = static_cast<const uint8_t*>(src_data);
  auto* dst = static_cast<uint8_t*>(dst_data);
  pool.ForRanges(plan.units, plan.tasks, [&](int64_t first, int64_t last, int) {
    switch (plan.method) {
      case ShuffleMethod::kCopy:
        memcpy(dst + first, src + first, last - first);
        break;
      case ShuffleMethod::kCopyEntries:
        RunRows(plan, src, dst, first, last);
        break;
      case ShuffleMethod::kPermute:
        for (int64_t unit = first; unit < last; ++unit) RunTile(plan, src, dst, unit);
        break;
      case ShuffleMethod::kTranspose:
        for (int64_t unit = first; unit < last; ++unit) RunTranspose(plan.desc, src, dst, unit);
    }
  });
  const ShuffleDesc& d = plan.desc;
  if (d.tail != 0 && d.channels % d.block != 0) FillTails(d, dst, pool);
}

}  // namespace bd
