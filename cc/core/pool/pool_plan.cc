#include <algorithm>

#include "cc/core/pool/pool.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into
// tasks of about kTaskNs.
constexpr int64_t kInlineNs = 20000;
constexpr int64_t kTaskNs = 10000;

std::string Resolve(const char* name, const PoolDesc& desc, Window1d* window) {
  std::string error = ResolveWindow(desc.padding, window);
  if (error.empty() && window->dilation != 1) error = "pooling has no dilation";
  const int64_t pad = std::max(window->pad_before, window->pad_after);
  if (error.empty() && pad >= window->kernel) {
    error = "padding " + std::to_string(pad) + " needs to be smaller than the window " +
            std::to_string(window->kernel);
  }
  return error.empty() ? error : std::string(name) + ": " + error;
}

bool CoversAll(const Window1d& w) { return w.out == 1 && w.kernel - w.pad_before >= w.size; }

// One window; over nothing where the size is 0.
Window1d Whole(int64_t size) {
  Window1d w;
  w.size = size;
  w.kernel = size == 0 ? 2 : size;
  w.pad_before = w.pad_after = size == 0;
  return w;
}

// A vector loaded and combined takes about 1 ns from the cache next to L1.
int64_t UnitNs(const PoolPlan& plan) {
  const Window1d &rows = plan.desc.rows, &cols = plan.desc.cols;
  if (plan.whole_plane) return rows.size * cols.size;
  return cols.out * rows.kernel * std::min(cols.kernel, cols.size);
}

}  // namespace

PoolDesc PoolDesc::Global(PoolKind kind, int64_t n, int64_t channels, int64_t h, int64_t w,
                          bool plain_dst) {
  PoolDesc desc;
  desc.kind = kind;
  desc.n = n;
  desc.channels = channels;
  desc.rows = Whole(h);
  desc.cols = Whole(w);
  desc.padding = Padding::kExplicit;
  desc.plain_dst = plain_dst;
  return desc;
}

std::string MakePoolPlan(const PoolDesc& desc, Isa isa, PoolPlan* plan) {
  PoolPlan p;
  p.desc = desc;
  Window1d &rows = p.desc.rows, &cols = p.desc.cols;
  if (desc.n < 0 || desc.channels < 0) {
    return "batch and channels must not be negative, got " + std::to_string(desc.n) + " and " +
           std::to_string(desc.channels);
  }
  for (const std::string& error :
       {Resolve("height", p.desc, &rows), Resolve("width", p.desc, &cols)}) {
    if (!error.empty()) return error;
  }
  if (desc.plain_dst && (rows.out != 1 || cols.out != 1)) {
    return "only global pooling has a plain dst, got " + std::to_string(rows.out) + " x " +
           std::to_string(cols.out) + " output pixels";
  }
  if (desc.plain_dst && desc.dst_image_blocks > 0) {
    return "a plain dst cannot be a part of a wider tensor";
  }
  p.blocks = (desc.channels + 15) / 16;
  p.empty_src = rows.size == 0 || cols.size == 0;
  p.whole_plane = CoversAll(rows) && CoversAll(cols);
  const int64_t span = cols.size - cols.kernel + cols.pad_before;
  const int64_t inside = span < 0 ? 0 : span / cols.stride + 1;
  p.inner_begin = std::min(cols.out, (cols.pad_before + cols.stride - 1) / cols.stride);
  p.inner_end = std::max(p.inner_begin, std::min(cols.out, inside));
  p.kernels = &PoolKernelsFor(isa);

  const int64_t units = p.units(), unit_ns = std::max<int64_t>(1, UnitNs(p));
  p.units_per_task = units * unit_ns < kInlineNs ? std::max<int64_t>(1, units)
                                                 : std::max<int64_t>(1, kTaskNs / unit_ns);
  p.tasks = (units + p.units_per_task - 1) / p.units_per_task;
  *plan = p;
  return "";
}

}  // namespace bd
