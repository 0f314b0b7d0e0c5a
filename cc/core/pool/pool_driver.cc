#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cc/base/size.h"
#include "cc/core/pool/pool.h"
#include "cc/core/reorder/float_slice.h"

namespace bd {
namespace {

// The elements of a window that begins at `first` which are inside.
struct Span {
  int64_t first, count;
};
Span Inside(const Window1d& w, int64_t output) {
  const int64_t first = output * w.stride - w.pad_before, lo = std::max<int64_t>(first, 0);
  return {lo, std::min(first + w.kernel, w.size) - lo};
}

PoolWindows Along(const Window1d& row) {
  return {row.size, row.kernel, row.stride, row.pad_before, row.out, row.size * kBlock, 0};
}

// Unit: an output row of a block of an image, in the order of memory. What the kernel reads and
// writes as it is in memory stays there.
void PoolRows(const PoolPlan& plan, FloatRows& memory, int64_t begin, int64_t end) {
  const PoolDesc& d = plan.desc;
  const Windows& windows = d.windows;
  const TensorView &from = d.src, &to = d.dst;
  const bool bf16 = plan.bf16 && to.dtype() == DataType::bf16;
  const auto& kernels = plan.byte_rows ? plan.kernels->byte_row
                        : bf16         ? plan.kernels->row_bf16
                                       : plan.kernels->row;
  const auto run = kernels[static_cast<int>(d.kind)];
  PoolRow row(Along(windows.w));
  const int64_t row_floats = row.row_stride;
  std::vector<uint8_t> columns(plan.byte_rows ? row_floats : 0);
  row.inner_begin = plan.inner_begin;
  row.inner_end = plan.inner_end;
  row.from = d.src_quantization;
  row.to = d.dst_quantization;
  row.columns = columns.data();
  const int64_t rows = windows.d.out * windows.h.out;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / rows, n = plane / from.blocks(), block = plane % from.blocks();
    const Span slices = Inside(windows.d, unit % rows / windows.h.out);
    const Span lines = Inside(windows.h, unit % windows.h.out);
    row.valid_slices = slices.count;
    row.valid_rows = lines.count;
    const int64_t src =
        from.offset(n, block, (slices.first * windows.h.size + lines.first) * windows.w.size);
    const int64_t dst = to.offset(n, block, unit % rows * windows.w.out);
    if (bf16 || plan.byte_rows) {
      row.src = memory.src_bytes(src);
      row.dst = memory.dst_bytes(dst);
      row.slice_stride = windows.h.size * row_floats;
      run(row);
      continue;
    }
    row.src = memory.Src(src, slices.count, windows.h.size * row_floats, lines.count * row_floats,
                         &row.slice_stride);
    row.dst = memory.Dst(dst, windows.w.out * kBlock);
    run(row);
    memory.Store();
  }
}

// Where the 16 channels of a block go in an output of one pixel, and how many are stored: none of
// the tail where dst is plain.
int64_t PixelOf(const PoolPlan& plan, int64_t n, int64_t block, int* lanes) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  if (to.blocked()) {
    *lanes = kBlock;
    return to.offset(n, block, 0);
  }
  *lanes = static_cast<int>(from.lanes_of(block));
  return n * to.image_stride() + block * kBlock;
}

void PoolPlanes(const PoolPlan& plan, const void* all_src, FloatRows& memory, int64_t begin,
                int64_t end) {
  const TensorView& from = plan.desc.src;
  const auto run = plan.kernels->plane[static_cast<int>(plan.desc.kind)];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t n = unit / from.blocks(), block = unit % from.blocks();
    int lanes;
    int64_t step;
    const int64_t pixel = PixelOf(plan, n, block, &lanes);
    const int64_t first = from.offset(n, block, 0);
    float* const dst = memory.Dst(pixel, lanes);
    if (plan.averages_bytes) {
      plan.kernels->average_bytes(static_cast<const uint8_t*>(all_src) + first,
                                  plan.desc.src_quantization, from.pixels(), dst, lanes);
    } else if (plan.bf16) {
      plan.kernels->plane_bf16[static_cast<int>(plan.desc.kind)](
          static_cast<const Bfloat16*>(all_src) + first, from.pixels(), dst, lanes);
    } else {
      run(memory.Src(first, 1, 0, from.block_stride(), &step), from.pixels(), dst, lanes);
    }
    memory.Store();
  }
}

// Every window is all padding.
void FillPlanes(const PoolPlan& plan, FloatRows& memory, int64_t begin, int64_t end) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  const float value = plan.desc.kind == PoolKind::kMax ? -INFINITY : NAN;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t n = unit / from.blocks(), block = unit % from.blocks();
    for (int64_t p = 0; p < to.pixels(); ++p) {
      int lanes;
      const int64_t first = PixelOf(plan, n, block, &lanes) + p * kBlock;
      float* pixel = memory.Dst(first, lanes);
      for (int i = 0; i < lanes; ++i) pixel[i] = i < from.lanes_of(block) ? value : 0.f;
      memory.Store();
    }
  }
}

}  // namespace

void RunPool(const PoolPlan& plan, const void* src, void* dst, ThreadPool& pool) {
  pool.ForRanges(plan.units, plan.tasks, [&](int64_t begin, int64_t end, int) {
    FloatRows memory(plan.isa, plan.desc.src_type(), src, plan.desc.dst_type(), dst);
    if (plan.empty_src) {
      FillPlanes(plan, memory, begin, end);
    } else if (plan.whole_plane) {
      PoolPlanes(plan, src, memory, begin, end);
    } else {
      PoolRows(plan, memory, begin, end);
    }
  });
}

namespace {

// A block of an image. Rows of dsrc become zero right before the first window adds to them, while
// the next step finds them in a cache.
void PoolGradPlane(const PoolGradPlan& plan, const PoolGradArgs& args, int64_t n, int64_t block) {
  const PoolDesc& desc = plan.desc;
  const Window1d &rows = desc.windows.h, &columns = desc.windows.w;
  PoolGradRow row(Along(columns));
  const int64_t from = desc.src.offset(n, block, 0);
  int64_t zeroed = 0;
  const auto zero_until = [&](int64_t end) {
    if (end <= zeroed) return;
    memset(args.dsrc + from + zeroed * row.row_stride, 0,
           (end - zeroed) * row.row_stride * sizeof(float));
    zeroed = end;
  };
  for (int64_t o = 0; o < rows.out; ++o) {
    const Span inside = Inside(rows, o);
    if (inside.count <= 0) continue;
    zero_until(inside.first + inside.count);
    const int64_t to = desc.dst.offset(n, block, o * columns.out);
    row.valid_rows = inside.count;
    row.src = args.src + from + inside.first * row.row_stride;
    row.dsrc = args.dsrc + from + inside.first * row.row_stride;
    row.dst = args.dst + to;
    row.ddst = args.ddst + to;
    plan.kernels->row[static_cast<int>(desc.kind)](row);
  }
  zero_until(rows.size);
}

}  // namespace

std::string MakePoolGradPlan(const PoolDesc& desc, Isa isa, PoolGradPlan* plan) {
  PoolPlan forward;
  std::string error = MakePoolPlan(desc, isa, &forward);
  if (!error.empty()) return error;
  if (desc.src.d() != 1 || desc.windows.d.kernel != 1) return "the gradient is of planes alone";
  if (!desc.dst.blocked()) return "the gradient reads dst in blocks";
  plan->desc = desc;
  plan->kernels = &PoolGradKernelsFor(isa);
  return "";
}

void RunPoolGrad(const PoolGradPlan& plan, const PoolGradArgs& args, ThreadPool& pool) {
  const int64_t blocks = plan.desc.src.blocks();
  pool.ParallelFor(plan.desc.src.n() * blocks, [&](int64_t plane, int) {
    PoolGradPlane(plan, args, plane / blocks, plane % blocks);
  });
}

}  // namespace bd
