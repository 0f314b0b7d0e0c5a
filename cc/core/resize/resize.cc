#include "cc/core/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cc/base/bytes.h"
#include "cc/base/size.h"
#include "cc/core/reorder/float_slice.h"

namespace bd {
namespace {

constexpr int64_t kTaskFloats = 8 << 10;  // of dst, worth a task

std::string Check(const ResizeDesc& d) {
  const TensorView &src = d.src, &dst = d.dst;
  if (src.layout() != Layout::nChw16c || dst.layout() != Layout::nChw16c) {
    return "resizing takes nChw16c tensors; add a reorder";
  }
  if (std::max(dst.h(), dst.w()) > kMostResizedSide) {
    return "resizing makes at most 2^24 rows and columns, not " + dst.ToString();
  }
  if (src.n() != dst.n() || src.c() != dst.c()) {
    return "src and dst of resizing must have the same images and channels";
  }
  if (src.pixels() == 0 && dst.pixels() > 0) return "there are no pixels to resize";
  return "";
}

// As TensorFlow computes coordinates: in float, the scale rounded first.
std::vector<ResizeTap> Taps(const ResizeDesc& d, int64_t in, int64_t out, int64_t step) {
  const bool corners = d.coordinates == ResizeCoordinates::kAlignCorners && out > 1;
  const bool half = d.coordinates == ResizeCoordinates::kHalfPixel;
  const float scale = corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                              : static_cast<float>(in) / static_cast<float>(out);
  std::vector<ResizeTap> taps(out);
  for (int64_t o = 0; o < out; ++o) {
    const float place =
        half ? (static_cast<float>(o) + 0.5f) * scale : static_cast<float>(o) * scale;
    ResizeTap& tap = taps[o];
    if (d.kind == ResizeKind::kNearest) {
      const bool rounds = d.coordinates == ResizeCoordinates::kAlignCorners;
      const auto at = static_cast<int64_t>(rounds ? std::round(place) : std::floor(place));
      tap.lower = tap.upper = std::clamp<int64_t>(at, 0, in - 1) * step;
      tap.fraction = 0.f;
      continue;
    }
    const float x = half ? place - 0.5f : place;
    const float floor = std::floor(x);
    tap.lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1) * step;
    tap.upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(x)), 0, in - 1) * step;
    tap.fraction = x - floor;
  }
  return taps;
}

// The number of neighbours that each pixel becomes, if it is the same for all; else 0.
int64_t Factor(const std::vector<ResizeTap>& columns, int64_t in) {
  const auto out = static_cast<int64_t>(columns.size());
  if (in == 0 || out % in != 0) return 0;
  const int64_t factor = out / in;
  for (int64_t x = 0; x < out; ++x) {
    if (columns[x].lower != x / factor * kBlock) return 0;
  }
  return factor;
}

void Rows(const ResizePlan& plan, FloatRows memory, int64_t begin, int64_t end) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  const ResizeKernels& kernels = *plan.kernels;
  const bool nearest = plan.desc.kind == ResizeKind::kNearest;
  const int64_t dst_size = SizeOf(to.dtype());
  const auto run = !nearest          ? kernels.bilinear
                   : plan.factor > 0 ? kernels.repeat[dst_size / 2]
                                     : kernels.nearest[dst_size / 2];
  ResizeRow row;
  row.columns = plan.columns.data();
  row.out = to.w();
  row.factor = plan.factor;
  const int64_t row_floats = from.w() * kBlock, dst_bytes = to.w() * kBlock * dst_size;
  int64_t before = -1;  // the source row of the unit before, where that may be copied
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / to.h(), y = unit % to.h();
    const int64_t n = plane / to.blocks(), block = plane % to.blocks();
    const ResizeTap& tap = plan.rows[y];
    const int64_t first = to.offset(n, block, y * to.w());
    row.fraction = tap.fraction;
    char* const dst = memory.dst_bytes(first);
    if (nearest && unit > begin && y > 0 && before == tap.lower) {
      std::memcpy(dst, dst - dst_bytes, dst_bytes);
    } else if (nearest) {
      row.lower = memory.SrcAsDst(from.offset(n, block, 0) + tap.lower, row_floats);
      row.dst = As<float>(dst);
      run(row);
    } else {
      int64_t step;
      const int64_t rows = tap.upper == tap.lower ? 1 : 2;
      row.dst = memory.Dst(first, to.w() * kBlock);
      row.lower = memory.Src(from.offset(n, block, 0) + tap.lower, rows, tap.upper - tap.lower,
                             row_floats, &step);
      row.upper = row.lower + (rows - 1) * step;
      run(row);
      memory.Store();
    }
    before = tap.lower;
  }
}

}  // namespace

std::string MakeResizePlan(const ResizeDesc& desc, Isa isa, ResizePlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  *plan = ResizePlan();
  plan->desc = desc;
  plan->kernels = &ResizeKernelsFor(isa);
  plan->isa = isa;
  const TensorView& dst = desc.dst;
  if (dst.n() * dst.blocks() * dst.pixels() == 0) return "";
  plan->rows = Taps(desc, desc.src.h(), dst.h(), desc.src.w() * kBlock);
  plan->columns = Taps(desc, desc.src.w(), dst.w(), kBlock);
  if (desc.kind == ResizeKind::kNearest) plan->factor = Factor(plan->columns, desc.src.w());
  plan->units = dst.n() * dst.blocks() * dst.h();
  plan->tasks = CeilDiv(plan->units, std::max<int64_t>(1, kTaskFloats / (dst.w() * kBlock)));
  return "";
}

void RunResize(const ResizePlan& plan, const void* src, void* dst, ThreadPool& pool) {
  const ResizeDesc& d = plan.desc;
  pool.ForRanges(plan.units, plan.tasks, [&](int64_t begin, int64_t end, int) {
    Rows(plan, FloatRows(plan.isa, d.src_type(), src, d.dst_type(), dst), begin, end);
  });
}

}  // namespace bd
