// BlockdnnSqueezeExcite.
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/squeeze_excite/squeeze_excite.h"
#include "cc/kernels/memory_plan.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/kernels/scratchpad.h"
#include "cc/ops/attrs.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kFirstWeights = 1;

struct SqueezeExciteOpPlan {
  SqueezeExcitePlan core;
  TensorShape dst_shape;
};

Status MakePlan(const SqueezeExciteAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                int threads, SqueezeExciteOpPlan* plan) {
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(SqueezeExciteShape(attrs, inputs[kSrc],
                                        {inputs.begin() + kFirstWeights, inputs.end()}, &dst));
  TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
  Plane plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", inputs[kSrc], Layout::nChw16c, attrs.channels, &plane));
  SqueezeExciteDesc desc;
  desc.n = plane.n;
  desc.channels = attrs.channels;
  desc.pixels = plane.h * plane.w;
  desc.squeezed = attrs.squeezed;
  desc.reduce_post_ops = attrs.reduce_post_ops;
  desc.expand_post_ops = attrs.expand_post_ops;
  desc.plain_dst = attrs.dst_layout == Layout::nhwc;
  desc.scale_src = attrs.scale_src;
  return FromCore(MakeSqueezeExcitePlan(desc, ActiveIsa(), threads, &plan->core));
}

Status PlanMemoryOf(const NodeAttrs& node, const std::vector<PartialTensorShape>& inputs,
                    int threads, MemoryPlan* plan) {
  SqueezeExciteAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  SqueezeExciteOpPlan made;
  TF_RETURN_IF_ERROR(MakePlan(attrs, inputs, threads, &made));
  plan->scratch = made.core.scratch;
  plan->blocking = {{"reduce_splits", made.core.reduce.splits},
                    {"expand_splits", made.core.expand.splits}};
  return absl::OkStatus();
}

class SqueezeExciteOp : public PoolOpKernel {
 public:
  explicit SqueezeExciteOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
    if (attrs_.scale_src) reusable_inputs_ = {kSrc};
  }

 protected:
  void Execute(OpKernelContext* ctx) override {
    std::shared_ptr<const SqueezeExciteOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx,
                            [&](SqueezeExciteOpPlan* made) {
                              return MakePlan(attrs_, InputShapes(ctx, 0), pool().num_threads(),
                                              made);
                            },
                            &plan));
    Tensor* dst;
    int reused;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, reusable_inputs_, plan->dst_shape, &dst, &reused));
    if (dst->NumElements() == 0) return;
    ScratchpadMemory scratchpad;
    OP_REQUIRES_OK(ctx, scratchpad_.Take(ctx, plan->core.scratch.bytes(), &scratchpad));
    const auto part = [&](int i) { return InputData(ctx, kFirstWeights + i) + attrs_.offsets[i]; };
    SqueezeExciteBuffers buffers;
    buffers.src = InputData(ctx, kSrc);
    buffers.reduce_weights = part(0);
    buffers.reduce_bias = part(1);
    buffers.expand_weights = part(2);
    buffers.expand_bias = part(3);
    buffers.dst = static_cast<float*>(dst->data());
    buffers.scratch = scratchpad.data();
    RunLogged([&] { return Describe(ctx, *plan, reused); },
              [&] { RunSqueezeExcite(plan->core, buffers, pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {attrs_.channels})
        .Output(0, attrs_.dst_layout, {attrs_.channels});
  }

 private:
  std::string Describe(OpKernelContext* ctx, const SqueezeExciteOpPlan& plan, int reused) const {
    return absl::StrCat(
        "squeeze_excite ", IsaName(ActiveIsa()), " ", ctx->input(kSrc).shape().DebugString(), "->",
        plan.dst_shape.DebugString(), " through ", attrs_.squeezed,
        !attrs_.scale_src ? ""
        : reused >= 0     ? " scale_src in place"
                          : " scale_src",
        " scratch ", plan.core.scratch.bytes(), " ", scratchpad_.mode(), " \"",
        attrs_.reduce_post_ops.ToString(), "\" \"", attrs_.expand_post_ops.ToString(), "\"");
  }

  SqueezeExciteAttrs attrs_;
  std::vector<int> reusable_inputs_;  // whose memory dst may take
  Scratchpad scratchpad_;
  PlanCache<SqueezeExciteOpPlan> plans_;
};

const MemoryPlanRow row("BlockdnnSqueezeExcite", PlanMemoryOf);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnSqueezeExcite").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    SqueezeExciteOp);

}  // namespace
}  // namespace bd
