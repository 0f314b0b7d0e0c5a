// BlockdnnInnerProduct: rows are the pixels of a plain 1x1 convolution.
#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

bool ReadsSamples(const PostOpChain& chain) {
  return std::any_of(chain.entries().begin(), chain.entries().end(), [](const PostOp& op) {
    return op.kind == PostOpKind::kBinary && op.shape == OperandShape::kSampleChannel;
  });
}

// weights_shape is [ic, oc].
struct InnerProduct : OneConvOp<WeightsAttrs> {
  static OpSignature Signature() {
    return {"BlockdnnInnerProduct",
            {"src: T", "weights: T", "args: num_args * T"},
            {"dst: T"},
            "See bd.ops.inner_product."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    VisitWeights(v);
    v("post_ops: string = ''", &post_ops.text);
    VisitConstant(v);
    v.Choice("algorithm", &algorithm,
             {{"auto", ConvAlgorithm::kAuto}, {"direct", ConvAlgorithm::kDirect}}, "auto");
    VisitScratchpadMode(v);
  }
  Status Check() {
    src_layout = dst_layout = Layout::nhwc;
    TF_RETURN_IF_ERROR(CheckWeightsShape(2, 1, "[ic, oc]"));
    channels = weights_shape[0];
    return post_ops.Check();
  }

  Status Shapes(const ShapeList& in, ShapeList* shapes) const {
    PartialTensorShape& dst = shapes->emplace_back();
    if (!in[kSrc].unknown_rank()) TF_RETURN_IF_ERROR(RowsShape(in[kSrc], channels, oc, &dst));
    TF_RETURN_IF_ERROR(CheckWeightsSize(in[kWeights], weights_size(), weights_offset));
    OperandShapes operands{dst, oc, {}};
    if (dst.unknown_rank() || dst.dims() > 1) {  // samples are the first dimension
      const int64_t samples = dst.unknown_rank() ? kUnknown : dst.dim_size(0);
      TF_RETURN_IF_ERROR(BuildShape({samples, oc}, &operands.sample_channel.emplace_back()));
    }
    return CheckOperands(post_ops, From(in, kArgs), operands);
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    ConvDesc desc;
    desc.algorithm = algorithm;
    desc.keeps_weights = constant_weights;
    desc.changes_weights = site.changes_weights;
    desc.post_ops = post_ops.chain;
    Plane rows = {1, 1, in[kSrc].num_elements() / channels};
    if (ReadsSamples(desc.post_ops)) SplitSamples(in[kSrc], &rows, &desc.post_ops);
    desc.windows.w.size = desc.windows.w.out = rows.w;
    TF_RETURN_IF_ERROR(Views(dtype, dtype, rows, rows, &desc.src, &desc.dst));
    return FromCore(MakeConvPlan(desc, ActiveIsa(), site.threads, plan));
  }

  // Rows of one sample become an image. In [N, ic] every row is a sample, and sample_channel
  // operands are tensors.
  static void SplitSamples(const PartialTensorShape& src, Plane* rows, PostOpChain* post_ops) {
    if (src.dims() > 2) {
      rows->n = src.dim_size(0);
      rows->w = rows->n == 0 ? 0 : rows->w / rows->n;
      return;
    }
    PostOpChain chain;
    for (PostOp op : post_ops->entries()) {
      if (op.shape == OperandShape::kSampleChannel) op.shape = OperandShape::kTensor;
      chain.Append(op);
    }
    *post_ops = chain;
  }

  BlockedTensors Blocked(const ShapeList&) const { return {}; }
  std::string Describe(const Plan& plan, const Call& call) const {
    return DescribeAs("inner_product", plan, call);
  }
};

const OpRegistration<InnerProduct> registration;

}  // namespace
}  // namespace bd
