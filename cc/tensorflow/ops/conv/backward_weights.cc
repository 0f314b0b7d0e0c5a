// BlockdnnConvBackwardWeights.
#include "cc/core/conv/backward_weights/backward_weights.h"

#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

enum { kSrc, kDdst };

// The attributes are those of the convolution, without a chain.
struct BackwardWeights : OpDefaults, ConvAttrs {
  using Plan = BackwardWeightsPlan;

  static OpSignature Signature() {
    return {"BlockdnnConvBackwardWeights",
            {"src: T", "ddst: T"},
            {"dweights: T"},
            "The gradient of BlockdnnConv by its weights. algorithm is that of the convolutions "
            "that its own gradient is made of."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    VisitLayouts(v);
    v("channels: int >= 1", &channels);
    v("weights_shape: list(int)", &weights_shape);
    v("groups: int >= 1 = 1", &groups);
    window.Visit(v, /*has_dilations=*/true);
    VisitAlgorithm(v);
  }
  Status Check() { return CheckWeights(); }

  bool keeps_batch() const { return false; }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    const PartialTensorShape weights{tensorflow::gtl::ArraySlice<int64_t>(weights_shape)};
    dst->push_back(weights);
    PartialTensorShape of_ddst;
    TF_RETURN_IF_ERROR(Shape(in[kSrc], weights, {}, &of_ddst));
    if (of_ddst.IsCompatibleWith(in[kDdst])) return absl::OkStatus();
    return Invalid("ddst must have the shape of the convolution's result, ", of_ddst.DebugString(),
                   "; got ", in[kDdst].DebugString());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    ConvDesc desc;
    TF_RETURN_IF_ERROR(ConvAttrs::Describe(dtype, in[kSrc], &desc));
    desc.algorithm = ConvAlgorithm::kAuto;  // it sums products itself
    return FromCore(MakeBackwardWeightsPlan(desc, ActiveIsa(), site.threads, plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunBackwardWeights(plan, {m.in<float>(kSrc), m.in<float>(kDdst), m.out<float>(), m.scratch},
                       pool);
  }

  static void FillMemoryPlan(const Plan&, MemoryPlan* memory) { memory->algorithm = "direct"; }
  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors().Input(kSrc, src_layout, {channels}).Input(kDdst, dst_layout, {oc});
  }
};

const OpRegistration<BackwardWeights> backward_weights_registration;

}  // namespace
}  // namespace bd
