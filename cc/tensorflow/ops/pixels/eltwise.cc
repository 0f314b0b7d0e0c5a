// BlockdnnEltwise.
#include "cc/core/eltwise/eltwise.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"
#include "cc/tensorflow/ops/pixels/rows.h"

namespace bd {
namespace {

struct Eltwise : OpDefaults {
  using Plan = EltwisePlan;
  enum { kSrc, kFirstArg };

  Layout layout = Layout::nhwc;
  int64_t channels = 0;
  ChainAttrs post_ops;
  TypesAttrs types;
  DataType sum_type = DataType::f32;
  QuantizationAttr sum_quantization;
  int num_args = 0, num_sums = 0;
  ChannelPart src_part;
  DstPart dst_part;

  static OpSignature Signature() {
    return {"BlockdnnEltwise",
            {"src: T", "args: num_args * float", "sum: num_sums * sum_type", kTypedIntoInput},
            {"dst: dst_type"},
            "See bd.ops.eltwise."};
  }

  void Visit(AttrVisitor& v) {
    types.Visit(v);
    v("num_args: int >= 0", &num_args);
    v.Choice("layout", &layout, {Layout::nhwc, Layout::nChw16c});
    v("channels: int >= 1", &channels);
    v("post_ops: string", &post_ops.text);
    src_part.Visit("src_part", v);
    dst_part.Visit(v);
    dst_part.VisitIntoType(v);
    v("sum_type: {float, bfloat16, uint8} = DT_FLOAT", &sum_type);
    v("num_sums: int >= 0 = 0", &num_sums);
    sum_quantization.Visit("sum", v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(src_part.Check("src_part", layout, channels));
    TF_RETURN_IF_ERROR(dst_part.Check(layout, channels));
    TF_RETURN_IF_ERROR(dst_part.CheckIntoType(types.dst));
    TF_RETURN_IF_ERROR(types.Check());
    TF_RETURN_IF_ERROR(CheckSumCount(sum_type, num_sums));
    TF_RETURN_IF_ERROR(sum_quantization.Check("sum", sum_type));
    post_ops.num_args = num_args + num_sums;  // sum is the operand behind the others
    return post_ops.Check();
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    const ShapeList args(in.begin() + kFirstArg, in.end());
    Plane plane;
    TF_RETURN_IF_ERROR(PixelPlane(layout, src_part, channels, in[kSrc], &plane));
    OperandShapes shapes;
    if (!IsRows(layout, in[kSrc])) {
      TF_RETURN_IF_ERROR(MakeOperandShapes(layout, channels, plane, &shapes));
      TF_RETURN_IF_ERROR(CheckOperands(post_ops, args, shapes));
      TF_RETURN_IF_ERROR(
          MakeShape(layout, dst_part.tensor_channels(channels), plane, &dst->emplace_back()));
      return dst_part.CheckInto(args, dst->front());
    }
    shapes.channels = channels;
    if (in[kSrc].unknown_rank()) {
      shapes.sample_channel.emplace_back();  // it may be [N, H, W, C]
    } else {
      TF_RETURN_IF_ERROR(RowsShape(in[kSrc], channels, channels, &shapes.tensor));
    }
    dst->push_back(shapes.tensor);
    return CheckOperands(post_ops, args, shapes);
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Plane plane;
    TF_RETURN_IF_ERROR(PixelPlane(layout, src_part, channels, in[kSrc], &plane));
    EltwiseDesc desc;
    desc.post_ops = post_ops.chain;
    desc.src_quantization = types.of_src();
    desc.dst_quantization = types.of_dst();
    desc.arg_types.resize(num_args);
    if (num_sums > 0) desc.arg_types.push_back({sum_type, sum_quantization.value});
    TF_RETURN_IF_ERROR(MakeView(types.src, layout, channels, src_part, plane, &desc.src));
    TF_RETURN_IF_ERROR(MakeView(types.dst, layout, channels, dst_part, plane, &desc.dst));
    return FromCore(MakeEltwisePlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunEltwise(plan, m.in<void>(kSrc, src_part.offset(plan.desc.src)), m.all_in<float>(kFirstArg),
               m.out<void>(0, dst_part.offset(plan.desc.dst)), pool);
  }

  DataType arg_type(int arg) const { return arg < num_args ? DataType::f32 : sum_type; }

  // Of those of the type of dst: src, and operands that the chain reads at the element being
  // written and nowhere else.
  std::vector<int> reusable_inputs() const {
    std::vector<int> reusable;
    if (types.src == types.dst) reusable.push_back(kSrc);
    const auto& entries = post_ops.chain.entries();
    for (int arg = 0; arg < post_ops.num_args; ++arg) {
      const bool in_place = std::all_of(entries.begin(), entries.end(), [arg](const PostOp& op) {
        return op.kind == PostOpKind::kEltwise || op.operand.input != arg ||
               op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor;
      });
      if (in_place && arg_type(arg) == types.dst) reusable.push_back(kFirstArg + arg);
    }
    return reusable;
  }
  bool has_into() const { return dst_part.has_into(); }
  BlockedTensors Blocked(const ShapeList&) const {
    BlockedTensors blocked;
    blocked.Input(kSrc, src_part, layout, channels, types.of_src());
    for (const PostOp& op : post_ops.chain.entries()) {
      const bool is_sum = op.kind != PostOpKind::kEltwise && op.operand.input >= num_args;
      blocked.Operand(op, kFirstArg, layout, channels,
                      is_sum ? sum_quantization.value : Quantization());
    }
    return blocked.Output(0, dst_part, layout, channels, types.of_dst());
  }
  // "uint8->uint8 " where not all is float32.
  std::string NarrowNote() const {
    if (types.src == DataType::f32 && types.dst == DataType::f32) return "";
    return absl::StrCat(DataTypeName(types.src), "->", DataTypeName(types.dst), " ");
  }
  std::string Describe(const Plan&, const Call& call) const {
    return absl::StrCat("eltwise ", IsaName(ActiveIsa()), " ", NarrowNote(), call.dst(),
                        SumNote(post_ops.chain, call.in_place && !has_into()),
                        PartNote(src_part, dst_part, call.in_place), " \"",
                        post_ops.chain.ToString(), "\"");
  }
};

const OpRegistration<Eltwise> eltwise_registration;

}  // namespace
}  // namespace bd
