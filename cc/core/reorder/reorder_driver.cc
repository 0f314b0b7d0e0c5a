#include <algorithm>
#include <cstring>

#include "cc/base/bytes.h"
#include "cc/core/reorder/reorder.h"

namespace bd {
namespace {

void RunStrips(const ReorderPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  constexpr int64_t kLine = 64;
  const bool aligned = IsAligned(dst, kLine);
  const StripKernel kernel =
      aligned && plan.streaming_kernel != nullptr ? plan.streaming_kernel : plan.strip_kernel;
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t n = task / plan.strips;
    const int64_t first = task % plan.strips * plan.strip;
    ReorderStrip strip;
    strip.src = src + plan.src.offset(n, 0, first);
    strip.dst = dst + plan.dst.offset(n, 0, first);
    strip.pixels = std::min(plan.strip, plan.src.pixels() - first);
    strip.channels = plan.src.c();
    strip.block_stride = (plan.dst.blocked() ? plan.dst : plan.src).block_stride();
    kernel(strip);
  });
}

// Zero is all bits zero in every type, or the zero point of a type of one byte.
void ZeroTile(char* dst, const ReorderLoop& rows, const ReorderLoop& cols, int64_t bytes,
              int zero) {
  for (int64_t r = 0; r < rows.count; ++r, dst += rows.dst * bytes) {
    if (cols.dst == 1) {
      memset(dst, zero, cols.count * bytes);
      continue;
    }
    for (int64_t c = 0; c < cols.count; ++c) memset(dst + c * cols.dst * bytes, zero, bytes);
  }
}

// Pieces [first, last) of a nest.
void RunPieces(const ReorderPlan& plan, const ReorderNest& nest, int64_t first, int64_t last,
               const char* src, char* dst) {
  const ReorderDesc& d = plan.desc;
  const int64_t src_bytes = SizeOf(d.src.dtype()), dst_bytes = SizeOf(d.dst.dtype());
  const int num_loops = static_cast<int>(nest.loops.size());
  ReorderLoop at = nest.first;
  const auto step = [&at](const ReorderLoop& loop, int64_t steps) {
    at.src += steps * loop.src;
    at.dst += steps * loop.dst;
    at.scale += steps * loop.scale;
  };
  std::vector<int64_t> index(num_loops);
  int64_t rest = first;
  for (int l = num_loops - 1; l >= 0; --l) {
    index[l] = rest % nest.loops[l].count;
    rest /= nest.loops[l].count;
    step(nest.loops[l], index[l]);
  }

  ReorderTile tile;
  tile.rows = nest.rows, tile.cols = nest.cols;
  tile.src_type = {d.src.dtype(), d.src_quantization};
  tile.dst_type = {d.dst.dtype(), d.dst_quantization};
  tile.beta = d.beta;
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t row = index[nest.row_loop] * nest.piece_rows;
    const int64_t col = index[nest.col_loop] * nest.piece_cols;
    tile.rows.count = std::min(nest.piece_rows, nest.rows.count - row);
    tile.cols.count = std::min(nest.piece_cols, nest.cols.count - col);
    if (nest.zero) {
      ZeroTile(dst + at.dst * dst_bytes, tile.rows, tile.cols, dst_bytes,
               d.dst_quantization.zero_point);
    } else {
      tile.src = src + at.src * src_bytes;
      tile.dst = dst + at.dst * dst_bytes;
      tile.scales = d.scales.empty() ? nullptr : d.scales.data() + at.scale;
      plan.tile_kernel(tile);
    }
    for (int l = num_loops - 1; l >= 0; --l) {
      step(nest.loops[l], 1);
      if (++index[l] < nest.loops[l].count) break;
      step(nest.loops[l], -nest.loops[l].count);
      index[l] = 0;
    }
  }
}

void RunNests(const ReorderPlan& plan, const char* src, char* dst, ThreadPool& pool) {
  if (plan.tasks == 1) {
    for (const ReorderNest& nest : plan.nests) RunPieces(plan, nest, 0, nest.pieces, src, dst);
    return;
  }
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    auto nest = plan.nests.begin();
    for (; task >= nest->tasks; ++nest) task -= nest->tasks;
    const int64_t first = task * nest->pieces_per_task;
    RunPieces(plan, *nest, first, std::min(nest->pieces, first + nest->pieces_per_task), src, dst);
  });
}

}  // namespace

void RunReorder(const ReorderPlan& plan, const void* src, void* dst, ThreadPool& pool) {
  if (plan.strip_kernel != nullptr) {
    RunStrips(plan, static_cast<const float*>(src), static_cast<float*>(dst), pool);
  } else if (plan.tasks > 0) {
    RunNests(plan, static_cast<const char*>(src), static_cast<char*>(dst), pool);
  }
}

}  // namespace bd
