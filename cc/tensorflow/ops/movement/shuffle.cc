// BlockdnnShuffle.
#include "cc/core/shuffle/shuffle.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"
#include "tensorflow/core/framework/types.h"

namespace bd {
namespace {

struct Shuffle : OpDefaults {
  using Plan = ShufflePlan;
  static constexpr int kLike = 0;

  tensorflow::DataType type = tensorflow::DT_FLOAT;  // only its size matters
  int64_t axis = 0, group = 1, channels = 0;
  std::string layout;  // empty: a plain tensor of any rank
  bool backward = false;
  QuantizationAttr quantization;  // of uint8, where tails are to hold a zero point
  // Of the layout.
  Layout known = Layout::nhwc;
  int64_t rank = 0;  // of the logical tensor
  int64_t block = 1;

  static OpSignature Signature() {
    return {"BlockdnnShuffle", {"src: T"}, {"dst: T"}, "See bd.ops.shuffle."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, double, bfloat16, half, int8, uint8, int16, uint16, int32, int64, bool}", &type);
    v("axis: int", &axis);
    v("group: int", &group);
    v("layout: string = ''", &layout);
    v("channels: int = 0", &channels);
    v("backward: bool = false", &backward);
    quantization.Visit("src", v);
  }
  Status Check() {
    const DataType dtype = type == tensorflow::DT_UINT8 ? DataType::u8 : DataType::f32;
    if (!quantization.list.empty()) TF_RETURN_IF_ERROR(quantization.Check("src", dtype));
    if (group < 1) return Invalid("group must be at least 1, got ", group);
    if (!layout.empty()) {
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

  // src against a blocked layout.
  Status CheckBlocks(const PartialTensorShape& src) const {
    const auto differs = [&](int64_t dim, int64_t expected) {
      return src.dim_size(dim) != kUnknown && src.dim_size(dim) != expected;
    };
    const int64_t blocks = channels / block + (channels % block != 0);
    if (src.dims() == rank + 1 && !differs(1, blocks) && !differs(rank, block)) {
      return absl::OkStatus();
    }
    return Invalid("src must be ", layout, ", of rank ", rank + 1, " with ", blocks, " blocks of ",
                   block, " for ", channels, " channels; got ", src.DebugString());
  }

  // The tensor as [outer, channels, inner] around the axis, in blocks where that is the axis of
  // blocks. What is not known yet is kUnknown.
  Status View(const PartialTensorShape& src, ShuffleDesc* view) const {
    view->outer = view->channels = view->inner = view->group = kUnknown;
    // The rank is what `axis` counts in: that of the logical tensor.
    int64_t rank = this->rank;
    if (!src.unknown_rank()) {
      if (block > 1) {
        TF_RETURN_IF_ERROR(CheckBlocks(src));
      } else if (rank != 0 && src.dims() != rank) {
        return Invalid("src must be ", layout, ", of rank ", rank, "; got ", src.DebugString());
      } else {
        rank = src.dims();
      }
      if (rank < 1 || rank > kMaxRank) {
        return Invalid("src must have 1 to ", kMaxRank, " dimensions; got ", src.DebugString());
      }
    }
    if (rank == 0) return absl::OkStatus();
    if (axis < -rank || axis >= rank) {
      return Invalid("axis = ", axis, " is out of range for a tensor of ", rank,
                     " dimensions; it must be in [", -rank, ", ", rank - 1, "]");
    }
    const int64_t at = axis < 0 ? axis + rank : axis;
    const bool in_blocks = block > 1 && at == 1;
    if (in_blocks) {
      view->channels = channels;
      view->block = block;
    }
    if (!src.unknown_rank()) {
      if (!in_blocks) view->channels = src.dim_size(at);
      if (src.IsFullyDefined()) {
        view->outer = NumElements(src, 0, at);
        view->inner = NumElements(src, at + 1, in_blocks ? rank : src.dims());
      }
    }
    if (view->channels == kUnknown) return absl::OkStatus();
    if (view->channels % group != 0) {
      return Invalid("group = ", group, " must divide the ", view->channels, " entries of axis ",
                     axis);
    }
    view->group = backward && view->channels > 0 ? view->channels / group : group;
    return absl::OkStatus();
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    dst->push_back(in[0]);
    ShuffleDesc view;
    return View(in[0], &view);
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    ShuffleDesc desc;
    TF_RETURN_IF_ERROR(View(in[0], &desc));
    desc.element_bytes = tensorflow::DataTypeSize(type);
    desc.tail = static_cast<uint8_t>(quantization.value.zero_point);
    return FromCore(MakeShufflePlan(desc, ActiveIsa(), plan));
  }
  static bool Forwards(const Plan& plan) { return plan.method == ShuffleMethod::kCopy; }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunShuffle(plan, m.in<void>(0), m.out<void>(), pool);
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    constexpr const char* kMethods[] = {"forward", "rows", "permute", "transpose"};
    memory->algorithm = kMethods[static_cast<int>(plan.method)];
  }
  BlockedTensors Blocked(const ShapeList&) const {
    if (layout.empty()) return {};
    return BlockedTensors()
        .Input(0, ChannelPart(), known, channels, quantization.value)
        .Output(0, ChannelPart(), known, channels, quantization.value);
  }
};

const OpRegistration<Shuffle> shuffle_registration;

}  // namespace
}  // namespace bd
