// BlockdnnReorder.
#include <cstring>
#include <memory>
#include <string>

#include "cc/core/reorder/reorder.h"
#include "cc/tensorflow/attrs/movement/reorder_attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kInto = 1;

struct ReorderOpPlan {
  ReorderPlan reorder;
  TensorShape dst_shape;
};

struct ReorderLaunch : LaunchDefaults {
  std::shared_ptr<const ReorderOpPlan> plan;
  bool has_into = false;

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    const TensorDesc& dst = plan->reorder.desc.dst;
    if (!has_into && (!dst.is_dense() || dst.offset() > 0)) {  // what it does not write is 0
      memset(memory.dst(), 0, dst.size_bytes());
    }
    RunReorder(plan->reorder, memory.inputs[kSrc], memory.dst(), pool);
  }
};

class ReorderOp : public LaunchOpKernel<ReorderLaunch> {
 public:
  explicit ReorderOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status Resolve(OpKernelContext* ctx, ReorderLaunch* launch) override {
    launch->has_into = has_into();
    return plans_.Get(
        ctx, [&](ReorderOpPlan* made) { return MakePlan(ctx, made); }, &launch->plan);
  }

  bool has_into() const override { return attrs_.has_into; }

  // What `into` holds need not be a tensor yet.
  BlockedTensors Blocked(OpKernelContext* ctx) const override {
    ReorderDesc desc;
    TensorShape dst_shape;
    if (!DescribeCall(ctx, &desc, &dst_shape).ok()) return {};
    return BlockedTensors().Input(kSrc, desc.src).Output(0, desc.dst);
  }

 private:
  Status MakePlan(OpKernelContext* ctx, ReorderOpPlan* plan) const {
    ReorderDesc desc;
    TF_RETURN_IF_ERROR(DescribeCall(ctx, &desc, &plan->dst_shape));
    return FromCore(MakeReorderPlan(desc, ActiveIsa(), &plan->reorder));
  }

  // The reorder of the inputs of ctx and the shape of its result, after all checks.
  Status DescribeCall(OpKernelContext* ctx, ReorderDesc* desc, TensorShape* dst_shape) const {
    Dims dims;
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ReorderShape(attrs_, InputShape(ctx, kSrc),
                                    attrs_.has_into ? InputShape(ctx, kInto) : PartialTensorShape(),
                                    &dims, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    return attrs_.Describe(dims, desc);
  }

  std::string Describe(OpKernelContext* ctx, const ReorderLaunch& launch, bool) const override {
    const ReorderOpPlan& plan = *launch.plan;
    const auto side = [](const TensorDesc& desc, const TensorShape& shape) {
      return absl::StrCat(
          desc.layout() ? LayoutName(*desc.layout()) : "strided",
          desc.dtype() == DataType::f32 ? "" : absl::StrCat(" ", DataTypeName(desc.dtype()), " "),
          shape.DebugString());
    };
    return absl::StrCat("reorder ", IsaName(ActiveIsa()), " ",
                        side(plan.reorder.desc.src, ctx->input(kSrc).shape()), "->",
                        side(plan.reorder.desc.dst, plan.dst_shape));
  }

  ReorderAttrs attrs_;
  PlanCache<ReorderOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnReorder").Device(tensorflow::DEVICE_CPU), ReorderOp);

}  // namespace
}  // namespace bd
