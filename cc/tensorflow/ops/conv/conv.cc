// BlockdnnConv.
#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

struct Conv : OneConvOp<ConvAttrs> {
  static OpSignature Signature() {
    return {"BlockdnnConv",
            {"src: T", "weights: T", "args: num_args * T", kIntoInput},
            {"dst: T"},
            "See bd.ops.conv."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    VisitLayouts(v);
    v("channels: int >= 1", &channels);
    VisitWeights(v);
    v("groups: int >= 1 = 1", &groups);
    window.Visit(v, /*has_dilations=*/true);
    v("post_ops: string = ''", &post_ops.text);
    v("pool: list(int) = []", &pool);
    VisitAlgorithm(v);
    VisitConstant(v);
    src_part.Visit("src_part", v);
    v("src_blocks: list(int) = []", &src_blocks);
    dst_part.Visit(v);
    VisitScratchpadMode(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(CheckPool());
    TF_RETURN_IF_ERROR(CheckWeights());
    TF_RETURN_IF_ERROR(CheckPartsAndChain());
    return CheckSrcBlocks();
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    return Shape(in[kSrc], in[kWeights], From(in, kArgs), &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    ConvDesc desc;
    TF_RETURN_IF_ERROR(ConvAttrs::Describe(dtype, in[kSrc], &desc));
    desc.changes_weights = desc.hands_plain = site.changes_weights;
    return FromCore(MakeConvPlan(desc, ActiveIsa(), site.threads, plan));
  }
  std::string Describe(const Plan& plan, const Call& call) const {
    return DescribeAs("conv", plan, call);
  }
};

const OpRegistration<Conv> registration;

}  // namespace
}  // namespace bd
