// BlockdnnBatchNorm and BlockdnnBatchNormGrad.
#include "cc/core/normalization/batch_norm.h"
#include "cc/tensorflow/attrs/pixels/normalization_attrs.h"
#include "cc/tensorflow/op_base/launch.h"

namespace bd {
namespace {

struct Forward {
  static constexpr char kName[] = "batch_norm";
  enum { kSrc, kGamma, kBeta };
  static constexpr int kFirstRow = kGamma;
  static constexpr int kReused = -1;  // the gradient reads src
  static void Run(const BatchNormPlan& plan, BatchNormClamp, const LaunchMemory& m,
                  ThreadPool& pool) {
    RunBatchNorm(plan,
                 {m.inputs[kSrc], m.inputs[kGamma], m.inputs[kBeta], m.outputs[0], m.outputs[1],
                  m.outputs[2], m.scratch},
                 pool);
  }
};

struct Backward {
  static constexpr char kName[] = "batch_norm_grad";
  enum { kDdst, kSrc, kGamma, kBeta, kMean, kVariance, kDmean, kDvariance };
  static constexpr int kFirstRow = kGamma;
  static constexpr int kReused = kDdst;
  static void Run(const BatchNormPlan& plan, BatchNormClamp clamp, const LaunchMemory& m,
                  ThreadPool& pool) {
    BatchNormGradArgs args;
    args.clamp = clamp;
    args.src = m.inputs[kSrc];
    args.ddst = m.inputs[kDdst];
    args.gamma = m.inputs[kGamma];
    args.beta = m.inputs[kBeta];
    args.mean = m.inputs[kMean];
    args.variance = m.inputs[kVariance];
    args.dmean = m.inputs[kDmean];
    args.dvariance = m.inputs[kDvariance];
    args.dsrc = m.outputs[0];
    args.dgamma = m.outputs[1];
    args.dbeta = m.outputs[2];
    args.scratch = m.scratch;
    RunBatchNormGrad(plan, args, pool);
  }
};

template <typename Way>
struct BatchNormLaunch : LaunchDefaults {
  BatchNormPlan plan;
  BatchNormClamp clamp;
  TensorShape shapes[2];  // of an activation, of a row

  const TensorShape& dst_shape(int output = 0) const { return shapes[output > 0]; }
  int64_t scratch_bytes() const { return plan.scratch.bytes(); }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    Way::Run(plan, clamp, memory, pool);
  }
};

template <typename Way>
class BatchNormOp : public LaunchOpKernel<BatchNormLaunch<Way>> {
 public:
  explicit BatchNormOp(OpKernelConstruction* ctx) : LaunchOpKernel<BatchNormLaunch<Way>>(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    if (Way::kReused < 0) return;
    this->reusable_inputs_ = {Way::kReused};
    std::string clamp;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("clamp", &clamp));
    if (clamp == "relu") clamp_ = BatchNormClamp::kRelu;
    if (clamp == "relu6") clamp_ = BatchNormClamp::kRelu6;
  }

 protected:
  // A plan takes less than to look for one.
  Status Resolve(OpKernelContext* ctx, BatchNormLaunch<Way>* launch) override {
    TF_RETURN_IF_ERROR(attrs_.CheckShapes(InputShapes(ctx, 0), Way::kFirstRow));
    const TensorShape& src = ctx->input(Way::kSrc).shape();
    launch->shapes[0] = src;
    launch->shapes[1] = TensorShape({attrs_.channels});
    BatchNormDesc desc;
    desc.n = src.dim_size(0);
    desc.channels = attrs_.channels;
    desc.pixels = 1;
    for (int axis = 2; axis < src.dims() - 1; ++axis) desc.pixels *= src.dim_size(axis);
    desc.epsilon = attrs_.epsilon;
    launch->clamp = clamp_;
    launch->plan = MakeBatchNormPlan(desc, ActiveIsa(), this->pool().num_threads());
    return absl::OkStatus();
  }

  BlockedTensors Blocked(OpKernelContext* ctx) const override {
    constexpr Layout kLayouts[] = {Layout::nCw16c, Layout::nChw16c, Layout::nCdhw16c};
    BlockedTensors blocked;
    for (int i = 0; i < Way::kFirstRow; ++i) {
      const int spatial = ctx->input(i).dims() - 3;
      if (spatial < 1 || spatial > 3) continue;
      blocked.Input(i, kLayouts[spatial - 1], {attrs_.channels});
      if (i == 0) blocked.Output(0, kLayouts[spatial - 1], {attrs_.channels});
    }
    return blocked;
  }

  std::string Describe(OpKernelContext* ctx, const BatchNormLaunch<Way>& launch,
                       bool in_place) const override {
    return absl::StrCat(Way::kName, " ", IsaName(launch.plan.isa), " ",
                        launch.shapes[0].DebugString(), in_place ? " in place" : "");
  }

 private:
  NormalizationAttrs attrs_;
  BatchNormClamp clamp_ = BatchNormClamp::kNone;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnBatchNorm").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    BatchNormOp<Forward>);
REGISTER_KERNEL_BUILDER(
    Name("BlockdnnBatchNormGrad").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    BatchNormOp<Backward>);

}  // namespace
}  // namespace bd
