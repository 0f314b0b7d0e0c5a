#include <algorithm>
#include <cmath>

#include "cc/core/pool/pool.h"

namespace bd {
namespace {

void PoolRows(const PoolPlan& plan, const float* src, float* dst, int64_t begin, int64_t end) {
  const Window1d &rows = plan.desc.rows, &cols = plan.desc.cols;
  const auto run = plan.kernels->row[static_cast<int>(plan.desc.kind)];
  PoolRow row;
  row.row_stride = cols.size * 16;
  row.width = cols.size;
  row.kernel = cols.kernel;
  row.stride = cols.stride;
  row.pad = cols.pad_before;
  row.inner_begin = plan.inner_begin;
  row.inner_end = plan.inner_end;
  row.out = cols.out;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / rows.out, y = unit % rows.out;
    const int64_t first = y * rows.stride - rows.pad_before;
    const int64_t lo = std::max<int64_t>(first, 0);
    row.valid_rows = std::min(first + rows.kernel, rows.size) - lo;
    row.src = src + (plan.src_plane(plane) * rows.size + lo) * row.row_stride;
    row.dst = dst + (plan.dst_plane(plane) * rows.out + y) * cols.out * 16;
    run(row);
  }
}

// Where the 16 channels of plane `plane` of a one-pixel output go, and how many
// of them are stored.
float* PixelOf(const PoolPlan& plan, int64_t plane, float* dst, int* lanes) {
  *lanes = 16;
  if (!plan.desc.plain_dst) return dst + plan.dst_plane(plane) * 16;
  const int64_t n = plane / plan.blocks, c = plane % plan.blocks * 16;
  *lanes = static_cast<int>(std::min<int64_t>(16, plan.desc.channels - c));
  return dst + n * plan.desc.channels + c;
}

void PoolPlanes(const PoolPlan& plan, const float* src, float* dst, int64_t begin, int64_t end) {
  const int64_t pixels = plan.desc.rows.size * plan.desc.cols.size;
  const auto run = plan.kernels->plane[static_cast<int>(plan.desc.kind)];
  for (int64_t plane = begin; plane < end; ++plane) {
    int lanes;
    float* pixel = PixelOf(plan, plane, dst, &lanes);
    run(src + plan.src_plane(plane) * pixels * 16, pixels, pixel, lanes);
  }
}

// Every window is all padding.
void FillPlanes(const PoolPlan& plan, float* dst, int64_t begin, int64_t end) {
  const float value = plan.desc.kind == PoolKind::kMax ? -INFINITY : NAN;
  const int64_t pixels = plan.desc.rows.out * plan.desc.cols.out;
  for (int64_t plane = begin; plane < end; ++plane) {
    const int64_t c = plane % plan.blocks * 16;
    const int64_t valid = std::min<int64_t>(16, plan.desc.channels - c);
    for (int64_t p = 0; p < pixels; ++p) {
      int lanes = 16;
      float* pixel = pixels == 1 ? PixelOf(plan, plane, dst, &lanes)
                                 : dst + (plan.dst_plane(plane) * pixels + p) * 16;
      for (int i = 0; i < lanes; ++i) pixel[i] = i < valid ? value : 0.f;
    }
  }
}

}  // namespace

void RunPool(const PoolPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  const int64_t units = plan.units();
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t begin = task * plan.units_per_task;
    const int64_t end = std::min(units, begin + plan.units_per_task);
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
