#include <algorithm>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/pool/pool.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into
// tasks of about kTaskNs.
constexpr int64_t kInlineNs = 20000;
constexpr int64_t kTaskNs = 10000;
// Bytes come right after the convolution that made them, whose threads are awake.
constexpr int64_t kInlineNsOfBytes = 3000;
constexpr int64_t kTaskNsOfBytes = 1500;

std::string CheckWindow(const char* name, const Window1d& w) {
  if (w.dilation != 1) return StrCat(name, ": pooling has no dilation");
  const int64_t pad = std::max(w.pad_before, w.pad_after);
  if (pad < w.kernel) return "";
  return StrCat(name, ": padding ", pad, " needs to be smaller than the window ", w.kernel);
}

std::string CheckTensors(const PoolDesc& desc) {
  const TensorView &src = desc.src, &dst = desc.dst;
  const Windows& windows = desc.windows;
  if (!src.blocked() || src.lanes() != 16) {
    return StrCat("pooling reads blocks of 16 channels, got layout ", LayoutName(src.layout()));
  }
  Dims in = {src.d(), src.h(), src.w()};
  if (in != Dims({windows.d.size, windows.h.size, windows.w.size})) {
    return "the windows move over " +
           Dims({windows.d.size, windows.h.size, windows.w.size}).ToString() + ", src has " +
           in.ToString();
  }
  Dims out = windows.OutSizes(3), got = {dst.d(), dst.h(), dst.w()};
  if (dst.n() != src.n() || dst.c() != src.c() || got != out) {
    return StrCat("dst is ", dst.ToString(), ", which is not [", src.n(), ", ", src.c(),
                  "] with the windows' ", out.ToString());
  }
  if (dst.layout() == src.layout()) return "";
  if (dst.blocked()) {
    return StrCat("dst's layout ", LayoutName(dst.layout()), " is not src's ",
                  LayoutName(src.layout()));
  }
  if (dst.pixels() != 1) {
    return StrCat("only global pooling has a plain dst, got ", dst.pixels(), " output pixels");
  }
  return "";
}

// One window; over nothing where the size is 0.
Window1d Whole(int64_t size) {
  Window1d w;
  w.size = size;
  w.kernel = size == 0 ? 2 : size;
  w.pad_before = w.pad_after = size == 0;
  w.out = 1;
  return w;
}

// A vector loaded and combined takes about 1 ns from the cache next to L1, one of bytes 0.3.
int64_t UnitNs(const PoolPlan& plan) {
  const Windows& w = plan.desc.windows;
  if (plan.averages_bytes) return w.in() / 3;
  if (plan.byte_rows) return w.w.size * w.d.kernel * w.h.kernel / 2 + 3 * w.w.out;
  if (plan.whole_plane) return w.in();
  Size unit = w.w.out;
  for (const Window1d* along : {&w.d, &w.h, &w.w})
    unit = unit * std::min(along->kernel, along->size);
  return unit.value();
}

}  // namespace

PoolDesc PoolDesc::Global(PoolKind kind, const TensorView& src, Layout dst_layout) {
  PoolDesc desc;
  desc.kind = kind;
  desc.src = src;
  Dims dims = {src.n(), src.c()};
  while (dims.size() < PartsOf(dst_layout).rank) dims.push_back(1);
  desc.dst = TensorView(src.dtype(), dst_layout, dims);
  desc.windows.d = Whole(src.d());
  desc.windows.h = Whole(src.h());
  desc.windows.w = Whole(src.w());
  return desc;
}

std::string MakePoolPlan(const PoolDesc& desc, Isa isa, PoolPlan* plan) {
  const Windows& windows = desc.windows;
  for (const std::string& error :
       {CheckWindow("depth", windows.d), CheckWindow("height", windows.h),
        CheckWindow("width", windows.w), CheckTensors(desc)}) {
    if (!error.empty()) return error;
  }
  PoolPlan p;
  p.desc = desc;
  p.empty_src = desc.src.pixels() == 0;
  p.whole_plane = windows.d.covers_all() && windows.h.covers_all() && windows.w.covers_all();
  p.averages_bytes = p.whole_plane && desc.kind == PoolKind::kAvg &&
                     desc.src.dtype() == DataType::u8 && desc.src.pixels() <= kMostBytes;
  p.bf16 = desc.src.dtype() == DataType::bf16;
  const bool bytes = desc.src.dtype() == DataType::u8 && desc.dst.dtype() == DataType::u8;
  p.byte_rows = bytes && !p.whole_plane && !p.empty_src &&
                windows.d.kernel * windows.h.kernel * windows.w.kernel <= kMostSummedBytes &&
                (desc.kind == PoolKind::kAvg || desc.src_quantization == desc.dst_quantization);
  const Window1d& cols = windows.w;
  const int64_t span = cols.size - cols.kernel + cols.pad_before;
  const int64_t inside = span < 0 ? 0 : span / cols.stride + 1;
  p.inner_begin = std::min(cols.out, CeilDiv(cols.pad_before, cols.stride));
  p.inner_end = std::max(p.inner_begin, std::min(cols.out, inside));
  p.kernels = &PoolKernelsFor(isa);
  p.isa = isa;

  p.units = desc.src.n() * desc.src.blocks();
  if (!p.whole_plane && !p.empty_src) p.units *= windows.d.out * windows.h.out;
  const int64_t unit_ns = std::max<int64_t>(1, UnitNs(p));
  const bool awake = p.averages_bytes || p.byte_rows;
  const int64_t inline_ns = awake ? kInlineNsOfBytes : kInlineNs;
  const int64_t task_ns = awake ? kTaskNsOfBytes : kTaskNs;
  p.tasks = (Size(p.units) * unit_ns).value() < inline_ns
                ? 1
                : CeilDiv(p.units, std::max<int64_t>(1, task_ns / unit_ns));
  *plan = p;
  return "";
}

}  // namespace bd
