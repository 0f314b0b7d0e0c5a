#include <algorithm>
#include <cmath>

#include "cc/core/pool/pool.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

// The elements of a window that begins at `first` which are inside.
struct Span {
  int64_t first, count;
};
Span Inside(const Window1d& w, int64_t output) {
  const int64_t first = output * w.stride - w.pad_before, lo = std::max<int64_t>(first, 0);
  return {lo, std::min(first + w.kernel, w.size) - lo};
}

// Unit: an output row of a block of an image, in the order of memory.
void PoolRows(const PoolPlan& plan, const float* src, float* dst, int64_t begin, int64_t end) {
  const Windows& windows = plan.desc.windows;
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  const auto run = plan.kernels->row[static_cast<int>(plan.desc.kind)];
  PoolRow row;
  row.row_stride = windows.w.size * kBlock;
  row.slice_stride = windows.h.size * row.row_stride;
  row.width = windows.w.size;
  row.kernel = windows.w.kernel;
  row.stride = windows.w.stride;
  row.pad = windows.w.pad_before;
  row.inner_begin = plan.inner_begin;
  row.inner_end = plan.inner_end;
  row.out = windows.w.out;
  const int64_t rows = windows.d.out * windows.h.out;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / rows, n = plane / from.blocks(), block = plane % from.blocks();
    const Span slices = Inside(windows.d, unit % rows / windows.h.out);
    const Span lines = Inside(windows.h, unit % windows.h.out);
    row.valid_slices = slices.count;
    row.valid_rows = lines.count;
    row.src = src + from.offset(n, block, 0) + slices.first * row.slice_stride +
              lines.first * row.row_stride;
    row.dst = dst + to.offset(n, block, unit % rows * windows.w.out);
    run(row);
  }
}

// Where the 16 channels of a block go in an output of one pixel, and how many are stored: none of
// the tail where dst is plain.
float* PixelOf(const PoolPlan& plan, int64_t n, int64_t block, float* dst, int* lanes) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  if (to.blocked()) {
    *lanes = kBlock;
    return dst + to.offset(n, block, 0);
  }
  *lanes = static_cast<int>(from.lanes_of(block));
  return dst + n * to.image_stride() + block * kBlock;
}

void PoolPlanes(const PoolPlan& plan, const float* src, float* dst, int64_t begin, int64_t end) {
  const TensorView& from = plan.desc.src;
  const auto run = plan.kernels->plane[static_cast<int>(plan.desc.kind)];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t n = unit / from.blocks(), block = unit % from.blocks();
    int lanes;
    float* pixel = PixelOf(plan, n, block, dst, &lanes);
    run(src + from.offset(n, block, 0), from.pixels(), pixel, lanes);
  }
}

// Every window is all padding.
void FillPlanes(const PoolPlan& plan, float* dst, int64_t begin, int64_t end) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  const float value = plan.desc.kind == PoolKind::kMax ? -INFINITY : NAN;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t n = unit / from.blocks(), block = unit % from.blocks();
    for (int64_t p = 0; p < to.pixels(); ++p) {
      int lanes;
      float* pixel = PixelOf(plan, n, block, dst, &lanes) + p * kBlock;
      for (int i = 0; i < lanes; ++i) pixel[i] = i < from.lanes_of(block) ? value : 0.f;
    }
  }
}

}  // namespace

void RunPool(const PoolPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t begin = task * plan.units_per_task;
    const int64_t end = std::min(plan.units, begin + plan.units_per_task);
    if (plan.empty_src) {
      FillPlanes(plan, dst, begin, end);
    } else if (plan.whole_plane) {
      PoolPlanes(plan, src, dst, begin, end);
    } else {
      PoolRows(plan, src, dst, begin, end);
    }
  });
}

}  // namespace bd
