// BlockdnnEltwise.
#include "cc/core/eltwise/eltwise.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"
#include "cc/tensorflow/ops/pixels/rows.h"

namespace bd {
namespace {

struct Eltwise : ActivationOp {
  using Plan = EltwisePlan;
  enum { kSrc, kFirstArg };

  ChainAttrs post_ops;
  DataType sum_type = DataType::f32;
  QuantizationAttr sum_quantization;
  int num_args = 0, num_sums = 0;

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
    VisitParts(v);
    v("sum_type: {float, bfloat16, uint8} = DT_FLOAT", &sum_type);
    v("num_sums: int >= 0 = 0", &num_sums);
    sum_quantization.Visit("sum", v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(ActivationOp::Check());
    TF_RETURN_IF_ERROR(CheckSumCount(sum_type, num_sums));
    TF_RETURN_IF_ERROR(sum_quantization.Check("sum", sum_type));
    post_ops.num_args = num_args + num_sums;  // sum is the operand after the others
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
      return DstShape(plane, args, dst);
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
    TF_RETURN_IF_ERROR(SetTensors(plane, plane, &desc));
    desc.arg_types.resize(num_args);
    if (num_sums > 0) desc.arg_types.push_back({sum_type, sum_quantization.value});
    return FromCore(MakeEltwisePlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunEltwise(plan, Src(plan, m), m.all_in<float>(kFirstArg), Dst(plan, m), pool);
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
  BlockedTensors Blocked(const ShapeList& in) const {
    return ActivationOp::Blocked(in).Operands(post_ops.chain, kFirstArg, layout, channels, num_args,
                                              sum_quantization.value);
  }
};

const OpRegistration<Eltwise> eltwise_registration;

}  // namespace
}  // namespace bd
