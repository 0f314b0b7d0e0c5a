#include "cc/tensorflow/attrs/movement/shuffle_attrs.h"

namespace bd {
namespace {

int64_t Product(const PartialTensorShape& shape, int64_t first, int64_t last) {
  int64_t product = 1;
  for (int64_t i = first; i < last; ++i) product *= shape.dim_size(i);
  return product;
}

// `shape` against a blocked layout.
Status CheckBlocks(const ShuffleAttrs& a, const PartialTensorShape& shape) {
  const auto differs = [&](int64_t dim, int64_t expected) {
    return shape.dim_size(dim) != kUnknown && shape.dim_size(dim) != expected;
  };
  const int64_t blocks = a.channels / a.block + (a.channels % a.block != 0);
  if (shape.dims() == a.rank + 1 && !differs(1, blocks) && !differs(a.rank, a.block)) {
    return absl::OkStatus();
  }
  return Invalid("src must be ", a.layout, ", of rank ", a.rank + 1, " with ", blocks,
                 " blocks of ", a.block, " for ", a.channels, " channels; got ",
                 shape.DebugString());
}

}  // namespace

Status ShuffleAttrs::Check() {
  if (group < 1) return Invalid("group must be at least 1, got ", group);
  if (!layout.empty()) {
    Layout known;
    if (!ParseLayout(layout, &known) || PartsOf(known).letters[0] != 'n') {
      return Invalid("layout \"", layout,
                     "\" is not one that shuffle knows; leave it out for a plain tensor");
    }
    rank = PartsOf(known).rank;
    block = ChannelBlock(known);
  }
  if (block == 1 && channels != 0) {
    return Invalid("channels = ", channels, " belongs to blocked layouts; leave it out");
  }
  if (block > 1 && channels < 1) {
    return Invalid("channels must be given, at least 1, for layout ", layout, "; got ", channels);
  }
  return absl::OkStatus();
}

Status ViewForShuffle(const ShuffleAttrs& a, const PartialTensorShape& src, ShuffleView* view) {
  *view = ShuffleView();
  // The rank is what `axis` counts in: that of the logical tensor.
  int64_t rank = a.rank;
  if (!src.unknown_rank()) {
    if (a.block > 1) {
      TF_RETURN_IF_ERROR(CheckBlocks(a, src));
    } else if (a.rank != 0 && src.dims() != a.rank) {
      return Invalid("src must be ", a.layout, ", of rank ", a.rank, "; got ", src.DebugString());
    } else {
      rank = src.dims();
    }
    if (rank < 1 || rank > kMaxRank) {
      return Invalid("src must have 1 to ", kMaxRank, " dimensions; got ", src.DebugString());
    }
  }
  if (rank == 0) return absl::OkStatus();
  if (a.axis < -rank || a.axis >= rank) {
    return Invalid("axis = ", a.axis, " is out of range for a tensor of ", rank,
                   " dimensions; it must be in [", -rank, ", ", rank - 1, "]");
  }
  const int64_t axis = a.axis < 0 ? a.axis + rank : a.axis;
  const bool in_blocks = a.block > 1 && axis == 1;
  if (in_blocks) {
    view->channels = a.channels;
    view->block = a.block;
  }
  if (!src.unknown_rank()) {
    if (!in_blocks) view->channels = src.dim_size(axis);
    if (src.IsFullyDefined()) {
      view->outer = Product(src, 0, axis);
      view->inner = Product(src, axis + 1, in_blocks ? a.rank : src.dims());
    }
  }
  if (view->channels == kUnknown) return absl::OkStatus();
  if (view->channels % a.group != 0) {
    return Invalid("group = ", a.group, " must divide the ", view->channels, " entries of axis ",
                   a.axis);
  }
  view->group = a.backward && view->channels > 0 ? view->channels / a.group : a.group;
  return absl::OkStatus();
}

}  // namespace bd
