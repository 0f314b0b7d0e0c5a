// Each dimension is cut where either side cuts it: 40 channels between blocks of 16
// and blocks of 8 are 2 x 2 x 8 and, in the last block of 16, 8 more. A product of
// such ranges, one a dimension, is a nest of loops with constant steps; neighbours
// that step as one become one loop. So every pair of layouts is a handful of nests.
#include <algorithm>
#include <string>
#include <vector>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/reorder/reorder.h"

namespace bd {
namespace {

// A task moves about so many elements, some 5 us of work: of three tasks of two threads one waits
// for the last. Work below 20 us does not pay for another thread.
constexpr int64_t kElementsPerTask = 16 * 1024, kElementsAlone = 64 * 1024;

// From so many floats on, src and dst together exceed a last level cache of 32 MB, and stores
// bypass the caches, since a store through them first reads the line that it overwrites.
constexpr int64_t kStreamFloats = 4 * 1024 * 1024;

// ---- Checks ----

// Distinct elements of dst, its tails included, must have distinct places.
bool Overlaps(const TensorDesc& dst) {
  struct Step {
    int64_t stride, count;
  };
  std::vector<Step> steps;
  for (int d = 0; d < dst.rank(); ++d) {
    steps.push_back({dst.strides()[d], dst.padded_dims()[d] / dst.blocks()[d]});
    steps.push_back({dst.inner_strides()[d], dst.blocks()[d]});
  }
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.stride < b.stride; });
  int64_t reach = 0;  // of all smaller steps together
  for (const Step& step : steps) {
    if (step.count <= 1) continue;
    if (step.stride <= reach) return true;
    reach += step.stride * (step.count - 1);
  }
  return false;
}

std::string CheckScales(const ReorderDesc& d) {
  if (d.scales.empty()) return "";
  const Dims& dims = d.src.dims();
  if (d.scale_mask < 0 || d.scale_mask >> dims.size() != 0) {
    return StrCat("scale_mask ", d.scale_mask, " names a dimension beyond the ", dims.size(),
                  " of dims ", dims.ToString());
  }
  int64_t scales = 1;
  for (int i = 0; i < dims.size(); ++i) scales *= d.scale_mask >> i & 1 ? dims[i] : 1;
  if (scales == static_cast<int64_t>(d.scales.size())) return "";
  return StrCat("scale_mask ", d.scale_mask, " of dims ", dims.ToString(), " asks for ", scales,
                " scales; got ", d.scales.size());
}

// ---- Strips ----

// Both sides as views, one with channels last, the other in blocks of 16; images may be apart.
bool TakesStrips(const ReorderDesc& d, TensorView* src, TensorView* dst) {
  if (!d.scales.empty() || d.beta != 0) return false;
  if (!TensorView::Of(d.src, src) || !TensorView::Of(d.dst, dst)) return false;
  if (src->dtype() != DataType::f32 || dst->dtype() != DataType::f32) return false;
  const TensorView &blocked = src->blocked() ? *src : *dst, &plain = src->blocked() ? *dst : *src;
  return blocked.blocked() && blocked.lanes() == 16 && plain.channels_last();
}

void PlanStrips(const TensorView& src, const TensorView& dst, Isa isa, ReorderPlan* plan) {
  const StripKernels& kernels = StripKernelsFor(isa);
  const StripKernel* kernel = dst.blocked() ? kernels.plain_to_blocked : kernels.blocked_to_plain;
  plan->src = src;
  plan->dst = dst;
  plan->strip_kernel = kernel[0];
  const bool whole_lines =
      dst.blocked() || (src.c() % 16 == 0 && (src.n() == 1 || dst.image_stride() % 16 == 0));
  if (dst.elements() >= kStreamFloats && whole_lines) plan->streaming_kernel = kernel[1];
  const int64_t channels = RoundUp(src.c(), 16);
  const bool alone = src.n() * src.pixels() * channels <= kElementsAlone;
  plan->strip = alone ? src.pixels() : std::min(src.pixels(), CeilDiv(kElementsPerTask, channels));
  plan->strips = CeilDiv(src.pixels(), plan->strip);
  plan->tasks = src.n() * plan->strips;
}

// ---- Nests ----

// The indices [first, first + extent) of one dimension, as loops.
struct Range {
  ReorderLoop first;
  std::vector<ReorderLoop> loops;
};

// Makes the ranges of one dimension.
class Cutter {
 public:
  Cutter(const ReorderDesc& desc, int dim) : desc_(desc), dim_(dim) {
    if (desc.scale_mask >> dim & 1) {
      scale_ = 1;
      for (int d = dim + 1; d < desc.src.rank(); ++d) {
        scale_ *= desc.scale_mask >> d & 1 ? desc.src.dims()[d] : 1;
      }
    }
    for (int64_t block : {desc.src.blocks()[dim], desc.dst.blocks()[dim]}) {
      if (block > 1) blocks_.push_back(block);
    }
    std::sort(blocks_.rbegin(), blocks_.rend());  // the smaller divides the larger
    blocks_.erase(std::unique(blocks_.begin(), blocks_.end()), blocks_.end());
    blocks_.push_back(1);
  }

  // All of [0, extent).
  std::vector<Range> Whole(int64_t extent) const {
    std::vector<Range> ranges;
    int64_t first = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const int64_t whole = (extent - first) / blocks_[i];
      if (whole == 0) continue;
      Range range{At(first), {Loop(whole, blocks_[i])}};
      for (size_t k = i + 1; k < blocks_.size(); ++k) {
        range.loops.push_back(Loop(blocks_[k - 1] / blocks_[k], blocks_[k]));
      }
      ranges.push_back(range);
      first += whole * blocks_[i];
    }
    return ranges;
  }

  // [first, first + extent) inside a single block of dst.
  std::vector<Range> Tail(int64_t first, int64_t extent) const {
    if (extent == 0) return {};
    return {{At(first), {Loop(extent, 1)}}};
  }

 private:
  static int64_t Distance(const TensorDesc& desc, int dim, int64_t indices) {
    return indices / desc.blocks()[dim] * desc.strides()[dim] +
           indices % desc.blocks()[dim] * desc.inner_strides()[dim];
  }
  ReorderLoop At(int64_t index) const {
    return {1, Distance(desc_.src, dim_, index), Distance(desc_.dst, dim_, index), index * scale_};
  }
  ReorderLoop Loop(int64_t count, int64_t step) const {
    ReorderLoop loop = At(step);
    loop.count = count;
    return loop;
  }

  const ReorderDesc& desc_;
  int dim_;
  int64_t scale_ = 0;
  std::vector<int64_t> blocks_;
};

// Drops loops of one step and joins neighbours that step as one.
std::vector<ReorderLoop> Simplify(std::vector<ReorderLoop> loops) {
  loops.erase(std::remove_if(loops.begin(), loops.end(),
                             [](const ReorderLoop& loop) { return loop.count == 1; }),
              loops.end());
  std::stable_sort(loops.begin(), loops.end(),
                   [](const ReorderLoop& a, const ReorderLoop& b) { return a.dst > b.dst; });
  std::vector<ReorderLoop> joined;
  for (const ReorderLoop& inner : loops) {
    const int64_t n = inner.count;
    if (!joined.empty() && joined.back().src == n * inner.src &&
        joined.back().dst == n * inner.dst && joined.back().scale == n * inner.scale) {
      const int64_t outer = joined.back().count;
      joined.back() = inner;
      joined.back().count = outer * n;
    } else {
      joined.push_back(inner);
    }
  }
  return joined;
}

bool CloserInSrc(const ReorderLoop& a, const ReorderLoop& b) { return a.src < b.src; }

// Takes the last loop of `loops`, or one that a kernel finds easy.
ReorderLoop TakeLast(std::vector<ReorderLoop>* loops) {
  if (loops->empty()) return {1, 1, 1, 0};
  const ReorderLoop loop = loops->back();
  loops->pop_back();
  return loop;
}

// Columns are what lies closest in dst. If they are apart in src, rows are what lies
// closest there.
void ChooseTile(ReorderNest* nest) {
  auto& loops = nest->loops;
  nest->cols = TakeLast(&loops);
  if (nest->cols.src != 1 && !nest->zero && !loops.empty()) {
    const auto closest = std::min_element(loops.begin(), loops.end(), CloserInSrc);
    std::rotate(closest, closest + 1, loops.end());
  }
  nest->rows = TakeLast(&loops);
}

// Pieces are whole rows where these are short, and otherwise whole cache lines of
// both sides.
void CutTile(ReorderNest* nest) {
  constexpr int64_t kLines = 64;  // elements: whole lines whatever the type
  const int64_t rows = nest->rows.count, cols = nest->cols.count;
  const bool transposes = nest->cols.src != 1 && rows > 1;
  const int64_t most_rows = transposes ? std::min<int64_t>(rows, 4 * kLines) : rows;
  nest->piece_cols = cols;
  if (transposes || cols > kElementsPerTask) {
    const int64_t wanted = transposes ? kElementsPerTask / most_rows : kElementsPerTask;
    nest->piece_cols = std::min(cols, RoundUp(wanted, kLines));
  }
  nest->piece_rows = std::min(
      most_rows, RoundUp(CeilDiv(kElementsPerTask, nest->piece_cols), transposes ? kLines : 1));
  const auto pieces = [](ReorderLoop loop, int64_t piece) {
    return ReorderLoop{CeilDiv(loop.count, piece), loop.src * piece, loop.dst * piece,
                       loop.scale * piece};
  };
  // Short runs, whose neighbours in src another loop reaches: a few rows of that loop
  // before the next rows, so that lines of src are read whole while they are near.
  auto& loops = nest->loops;
  ReorderLoop closer;
  const auto closest = std::min_element(loops.begin(), loops.end(), CloserInSrc);
  if (!transposes && closest != loops.end() && closest->src < nest->rows.src && cols < kLines) {
    closer = *closest;
    loops.erase(closest);
    nest->piece_rows = std::min(rows, kLines);
  }
  nest->row_loop = static_cast<int>(loops.size());
  loops.push_back(pieces(nest->rows, nest->piece_rows));
  if (closer.count > 1) loops.push_back(closer);
  nest->col_loop = static_cast<int>(loops.size());
  loops.push_back(pieces(nest->cols, nest->piece_cols));

  nest->pieces = 1;
  for (const ReorderLoop& loop : nest->loops) nest->pieces *= loop.count;
  const int64_t size = nest->piece_rows * nest->piece_cols;
  nest->pieces_per_task = std::max<int64_t>(1, kElementsPerTask / size);
  nest->tasks = CeilDiv(nest->pieces, nest->pieces_per_task);
}

// One nest for each choice of a range from each dimension.
void AddNests(const std::vector<std::vector<Range>>& ranges, bool zero, ReorderPlan* plan) {
  for (const auto& of_dim : ranges) {
    if (of_dim.empty()) return;
  }
  std::vector<size_t> choice(ranges.size(), 0);
  for (;;) {
    ReorderNest nest;
    nest.zero = zero;
    nest.first = {1, plan->desc.src.offset(), plan->desc.dst.offset(), 0};
    std::vector<ReorderLoop> loops;
    for (size_t d = 0; d < ranges.size(); ++d) {
      const Range& range = ranges[d][choice[d]];
      nest.first.src += range.first.src;
      nest.first.dst += range.first.dst;
      nest.first.scale += range.first.scale;
      loops.insert(loops.end(), range.loops.begin(), range.loops.end());
    }
    nest.loops = Simplify(std::move(loops));
    ChooseTile(&nest);
    CutTile(&nest);
    plan->tasks += nest.tasks;
    plan->nests.push_back(std::move(nest));
    size_t d = 0;
    for (; d < ranges.size() && ++choice[d] == ranges[d].size(); ++d) choice[d] = 0;
    if (d == ranges.size()) return;
  }
}

void PlanNests(Isa isa, ReorderPlan* plan) {
  const ReorderDesc& desc = plan->desc;
  const Dims& dims = desc.dst.dims();
  const Dims& padded = desc.dst.padded_dims();
  std::vector<std::vector<Range>> ranges;
  for (int d = 0; d < dims.size(); ++d) ranges.push_back(Cutter(desc, d).Whole(dims[d]));
  AddNests(ranges, /*zero=*/false, plan);

  // The tail of dimension d: of those before it the elements, of those after it the
  // tails, too, so that every place is written once.
  const ReorderDesc tails = {desc.dst, desc.dst, {}, 0, 0, {}, {}};
  for (int d = 0; d < dims.size(); ++d) {
    ranges.clear();
    for (int i = 0; i < dims.size(); ++i) {
      const Cutter cutter(tails, i);
      ranges.push_back(i == d  ? cutter.Tail(dims[d], padded[d] - dims[d])
                       : i < d ? cutter.Whole(dims[i])
                               : cutter.Whole(padded[i]));
    }
    AddNests(ranges, /*zero=*/true, plan);
  }
  if (desc.dst.size() <= kElementsAlone) plan->tasks = 1;

  const ReorderTileKernels& kernels = ReorderTileKernelsFor(isa);
  const DataType type = desc.dst.dtype();
  plan->tile_kernel = desc.copies() ? kernels.copy[SizeOf(type) / 2] : kernels.convert;
}

}  // namespace

std::string CheckReorder(const ReorderDesc& d) {
  if (d.src.dims() != d.dst.dims()) {
    return "reorder needs equal dims; src has " + d.src.dims().ToString() + ", dst " +
           d.dst.dims().ToString();
  }
  if (d.dst.size() > 0 && Overlaps(d.dst)) {
    return "strides " + d.dst.strides().ToString() + " of dst, with dims " +
           d.dst.dims().ToString() + ", let its elements overlap";
  }
  std::string error = CheckScales(d);
  if (error.empty()) error = CheckQuantization("src", d.src.dtype(), d.src_quantization);
  if (error.empty()) error = CheckQuantization("dst", d.dst.dtype(), d.dst_quantization);
  return error;
}

std::string MakeReorderPlan(const ReorderDesc& desc, Isa isa, ReorderPlan* plan) {
  if (std::string error = CheckReorder(desc); !error.empty()) return error;
  *plan = ReorderPlan();
  plan->desc = desc;
  if (desc.dst.size() == 0) return "";
  TensorView src, dst;
  // A single pixel of whole blocks lies the same in both layouts.
  if (TakesStrips(desc, &src, &dst) && (src.pixels() > 1 || src.c() % 16 != 0)) {
    PlanStrips(src, dst, isa, plan);
    return "";
  }
  PlanNests(isa, plan);
  return "";
}

}  // namespace bd
