// BlockdnnSqueezeExcite.
#include <algorithm>
#include <iterator>
#include <memory>

#include "cc/core/squeeze_excite/squeeze_excite.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/op_base/plan_cache.h"

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
  const Plane pixel = {plane.n, 1, 1};
  TF_RETURN_IF_ERROR(MakeView(Layout::nChw16c, attrs.channels, {}, plane, &desc.src));
  TF_RETURN_IF_ERROR(attrs.scale_src
                         ? MakeView(Layout::nChw16c, attrs.channels, {}, plane, &desc.dst)
                         : MakeView(attrs.dst_layout, attrs.channels, {}, pixel, &desc.dst));
  desc.squeezed = attrs.squeezed;
  desc.reduce_post_ops = attrs.reduce_post_ops;
  desc.expand_post_ops = attrs.expand_post_ops;
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

struct SqueezeExciteLaunch : LaunchDefaults {
  std::shared_ptr<const SqueezeExciteOpPlan> plan;
  int64_t offsets[4];  // of the weights' first elements

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->core.scratch.bytes(); }

  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    const auto part = [&](int i) { return memory.inputs[kFirstWeights + i] + offsets[i]; };
    SqueezeExciteBuffers buffers;
    buffers.src = memory.inputs[kSrc];
    buffers.reduce_weights = part(0);
    buffers.reduce_bias = part(1);
    buffers.expand_weights = part(2);
    buffers.expand_bias = part(3);
    buffers.dst = memory.dst();
    buffers.scratch = memory.scratch;
    RunSqueezeExcite(plan->core, buffers, pool);
  }
};

class SqueezeExciteOp : public LaunchOpKernel<SqueezeExciteLaunch> {
 public:
  explicit SqueezeExciteOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
    if (attrs_.scale_src) reusable_inputs_ = {kSrc};
  }

 protected:
  Status Resolve(OpKernelContext* ctx, SqueezeExciteLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx,
        [&](SqueezeExciteOpPlan* made) {
          return MakePlan(attrs_, InputShapes(ctx, 0), pool().num_threads(), made);
        },
        &launch->plan));
    std::copy_n(attrs_.offsets.begin(), std::size(launch->offsets), launch->offsets);
    return absl::OkStatus();
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {attrs_.channels})
        .Output(0, attrs_.dst_layout, {attrs_.channels});
  }

 private:
  std::string Describe(OpKernelContext* ctx, const SqueezeExciteLaunch& launch,
                       bool in_place) const override {
    return absl::StrCat(
        "squeeze_excite ", IsaName(ActiveIsa()), " ", ctx->input(kSrc).shape().DebugString(), "->",
        launch.dst_shape().DebugString(), " through ", attrs_.squeezed,
        !attrs_.scale_src ? ""
        : in_place        ? " scale_src in place"
                          : " scale_src",
        " scratch ", launch.scratch_bytes(), " ", scratchpad_.mode(), " \"",
        attrs_.reduce_post_ops.ToString(), "\" \"", attrs_.expand_post_ops.ToString(), "\"");
  }

  SqueezeExciteAttrs attrs_;
  PlanCache<SqueezeExciteOpPlan> plans_;
};

const MemoryPlanRow row("BlockdnnSqueezeExcite", PlanMemoryOf);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnSqueezeExcite").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    SqueezeExciteOp);

}  // namespace
}  // namespace bd
