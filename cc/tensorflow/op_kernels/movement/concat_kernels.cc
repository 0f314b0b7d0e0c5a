// BlockdnnConcat.
#include <memory>

#include "cc/core/concat/concat.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {
namespace {

struct ConcatOpPlan {
  ConcatPlan concat;
  TensorShape dst_shape;
};

struct ConcatLaunch : LaunchDefaults {
  std::shared_ptr<const ConcatOpPlan> plan;
  int64_t dst_offset = 0;  // of a part

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunConcat(plan->concat, memory.inputs, memory.dst() + dst_offset, pool);
  }
};

class ConcatOp : public LaunchOpKernel<ConcatLaunch> {
 public:
  explicit ConcatOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status Resolve(OpKernelContext* ctx, ConcatLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx, [&](ConcatOpPlan* made) { return MakePlan(ctx, made); }, &launch->plan));
    launch->dst_offset = attrs_.dst_part.offset(launch->plan->concat.desc.dst.pixels());
    return absl::OkStatus();
  }

  bool has_into() const override { return attrs_.dst_part.has_into; }

  BlockedTensors Blocked(OpKernelContext*) const override {
    BlockedTensors blocked;
    for (size_t i = 0; i < attrs_.channels.size(); ++i) {
      blocked.Input(i, Layout::nChw16c, {attrs_.src_channels(i)});
    }
    return blocked.Output(0, attrs_.dst_part, Layout::nChw16c, attrs_.dst_channels());
  }

 private:
  Status MakePlan(OpKernelContext* ctx, ConcatOpPlan* plan) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ConcatShape(attrs_, InputShapes(ctx, 0), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    ConcatDesc desc;
    const Plane plane = {dst.dim_size(0), dst.dim_size(2), dst.dim_size(3)};
    desc.srcs.resize(attrs_.channels.size());
    for (size_t i = 0; i < attrs_.channels.size(); ++i) {
      TF_RETURN_IF_ERROR(
          MakeView(Layout::nChw16c, attrs_.src_channels(i), {}, plane, &desc.srcs[i]));
      desc.ranges.push_back({attrs_.first(i), attrs_.channels[i]});
    }
    TF_RETURN_IF_ERROR(
        MakeView(Layout::nChw16c, attrs_.dst_channels(), attrs_.dst_part, plane, &desc.dst));
    return FromCore(MakeConcatPlan(desc, ActiveIsa(), &plan->concat));
  }

  std::string Describe(OpKernelContext*, const ConcatLaunch& launch, bool in_place) const override {
    return absl::StrCat("concat ", IsaName(ActiveIsa()), " ", attrs_.channels.size(), " values->",
                        launch.dst_shape().DebugString(), PartNote({}, attrs_.dst_part, in_place));
  }

  ConcatAttrs attrs_;
  PlanCache<ConcatOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConcat").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ConcatOp);

}  // namespace
}  // namespace bd
