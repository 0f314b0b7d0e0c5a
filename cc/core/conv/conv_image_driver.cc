// Runs tasks over an NHWC source with a window: see conv_image.h.
#include <algorithm>

#include "cc/core/conv/conv_image.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/conv/conv_run.h"

namespace bd {
namespace {

// Source columns that neighbouring output pixels read.
int64_t Columns(const ConvDesc& d, int64_t pixels) {
  return pixels == 0 ? 0 : (pixels - 1) * d.sw + (d.kw - 1) * d.dw + 1;
}

// Columns [x, x + width) of a source row, zero where outside it.
void CopyColumns(const ConvDesc& d, const float* row, int64_t x, int64_t width, float* dst) {
  const int64_t begin = std::clamp<int64_t>(-x, 0, width);
  const int64_t end = std::clamp(d.iw - x, begin, width);
  std::fill(dst, dst + begin * d.ic, 0.f);
  std::copy(row + (x + begin) * d.ic, row + (x + end) * d.ic, dst + begin * d.ic);
  std::fill(dst + end * d.ic, dst + width * d.ic, 0.f);
}

// The columns that the tiles at the edges read, of every source row of a task; rows
// outside the image stay as they are.
void CopyEdges(const ConvRun& run, const ImageRow& row, const TaskRange& r, float* strip) {
  const ConvDesc& d = run.d;
  const int64_t first = r.begin / d.ow * d.sh - d.pad_top;
  const int64_t count = ((r.end - r.begin) / d.ow - 1) * d.sh + (d.kh - 1) * d.dh + 1;
  const int64_t step = (row.left_columns + row.right_columns) * d.ic;
  const int64_t right_x = row.FirstPixel(row.right) * d.sw - d.pad_left;
  for (int64_t ih = std::max<int64_t>(first, 0); ih < std::min(d.ih, first + count); ++ih) {
    const float* src = run.buffers.src + (r.n * d.ih + ih) * d.iw * d.ic;
    float* dst = strip + (ih - first) * step;
    if (row.left > 0) CopyColumns(d, src, -d.pad_left, row.left_columns, dst);
    if (row.right < row.tiles) {
      CopyColumns(d, src, right_x, row.right_columns, dst + row.left_columns * d.ic);
    }
  }
}

}  // namespace

ImageRow SplitImageRow(const ConvDesc& d, int64_t widest_tile) {
  ImageRow row;
  row.tiles = CeilDiv(d.ow, widest_tile);
  row.narrow = d.ow / row.tiles;
  row.wide = d.ow % row.tiles;
  // Pixels [begin, end) are inside.
  const int64_t begin = CeilDiv(d.pad_left, d.sw);
  const int64_t last_x = d.iw - 1 - (d.kw - 1) * d.dw + d.pad_left;
  const int64_t end = last_x < 0 ? 0 : last_x / d.sw + 1;
  row.left = 0;
  while (row.left < row.tiles && row.FirstPixel(row.left) < begin) ++row.left;
  row.right = row.tiles;
  while (row.right > row.left && row.FirstPixel(row.right) > end) --row.right;
  row.left_columns = Columns(d, row.FirstPixel(row.left));
  row.right_columns = Columns(d, d.ow - row.FirstPixel(row.right));
  return row;
}

void RunImageTask(const ConvRun& run, const TaskRange& r, const TileTarget& target, int thread) {
  const ConvPlan& plan = run.plan;
  const ConvDesc& d = run.d;
  const ImageRow row = SplitImageRow(d, run.kernels.tile_pixels);
  float* strip = run.Strip(thread);
  CopyEdges(run, row, r, strip);
  const int64_t strip_step = (row.left_columns + row.right_columns) * d.ic;
  const int64_t inside_x = row.FirstPixel(row.left) * d.sw - d.pad_left;
  const int64_t taps_per_row = static_cast<int64_t>(plan.tap_offsets.size()) / d.kh;
  const int64_t h0 = r.begin / d.ow, h1 = r.end / d.ow;
  int stride = 0;
  while (stride < kNumImageStrides && kImageStrides[stride] != plan.px_stride) ++stride;
  TileArgs a = {};
  a.tap_length = plan.tap_length;
  a.px_stride = plan.px_stride;
  a.dst_block_stride = target.block_stride;
  for (int64_t g = r.group_begin; g < r.group_end; ++g) {
    const OutputGroup& group = plan.groups[g];
    const auto& kernel = (stride < kNumImageStrides ? run.kernels.image_tile[stride]
                                                    : run.kernels.plain_tile)[group.blocks - 1];
    const float* weights = run.buffers.packed + group.weights_offset;
    const int64_t row_weights = taps_per_row * plan.tap_length * group.blocks * kBlock;
    PrefetchShare share;
    share.next =
        g + 1 < r.group_end ? run.buffers.packed + plan.groups[g + 1].weights_offset : nullptr;
    share.rows = d.kh * taps_per_row * plan.tap_length;
    share.row_floats = group.blocks * kBlock;
    share.tiles = (h1 - h0) * row.tiles;
    share.Start(&a);
    a.epilogue = GroupEpilogue(run, group, r.n);
    a.dst = target.base + (group.first_block - target.first_block) * target.block_stride;
    a.epilogue.dst_offset =  // in the whole tensor, where dst is blocked
        ((r.n * plan.ocb + group.first_block) * run.plane() + r.begin) * kBlock;
    if (run.sum != nullptr) a.epilogue.acc_in = run.sum + a.epilogue.dst_offset;
    // Tiles [i, end), of which the first reads from `src` on.
    const auto run_tiles = [&](int64_t i, int64_t end, const float* src, const int64_t* offsets) {
      a.tap_offsets = offsets;
      a.src = src;
      while (i < end) {
        const bool is_wide = i < row.wide;
        const int64_t px = row.narrow + is_wide;
        a.tiles = (is_wide ? std::min(end, row.wide) : end) - i;
        kernel[px - 1](a);
        const int64_t pixels = a.tiles * px;
        a.src += pixels * plan.px_stride;
        share.Pass(a.tiles, &a);
        a.dst += pixels * kBlock;
        a.epilogue.dst_offset += pixels * kBlock;
        if (run.sum != nullptr) a.epilogue.acc_in += pixels * kBlock;
        i += a.tiles;
      }
    };
    for (int64_t h = h0; h < h1; ++h) {
      const int64_t y = h * d.sh - d.pad_top;
      // Kernel rows [k0, k1) are inside the image.
      const int64_t k0 = y >= 0 ? 0 : std::min(d.kh, CeilDiv(-y, d.dh));
      const int64_t k1 = y + (d.kh - 1) * d.dh < d.ih
                             ? d.kh
                             : std::max(k0, y < d.ih ? CeilDiv(d.ih - y, d.dh) : 0);
      a.taps = (k1 - k0) * taps_per_row;
      a.weights = weights + k0 * row_weights;
      const float* copy = strip + ((h - h0) * d.sh + k0 * d.dh) * strip_step;
      const float* src = run.buffers.src + ((r.n * d.ih + y + k0 * d.dh) * d.iw + inside_x) * d.ic;
      run_tiles(0, row.left, copy, plan.tap_offsets.data());
      run_tiles(row.left, row.right, src, plan.src_tap_offsets.data());
      run_tiles(row.right, row.tiles, copy + row.left_columns * d.ic, plan.tap_offsets.data());
    }
  }
}

}  // namespace bd
