// BlockdnnReorder.
#include <cstring>
#include <memory>
#include <string>

#include "cc/base/verbose.h"
#include "cc/core/reorder/reorder.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/ops/reorder_attrs.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kInto = 1;

struct ReorderOpPlan {
  ReorderPlan reorder;
  TensorShape dst_shape;
};

class ReorderOp : public PoolOpKernel {
 public:
  explicit ReorderOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  void Execute(OpKernelContext* ctx) override {
    std::shared_ptr<const ReorderOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](ReorderOpPlan* made) { return MakePlan(ctx, made); }, &plan));
    Tensor* dst;
    OP_REQUIRES_OK(ctx, StartDst(ctx, *plan, &dst));
    if (dst->NumElements() == 0) return;
    RunLogged([&] { return Describe(ctx, *plan); },
              [&] { RunReorder(plan->reorder, ctx->input(kSrc).data(), dst->data(), pool()); });
  }

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

  // dst as the reorder expects it: holding `into`, or zeros where it writes nothing.
  Status StartDst(OpKernelContext* ctx, const ReorderOpPlan& plan, Tensor** dst) const {
    if (!attrs_.has_into) {
      TF_RETURN_IF_ERROR(AllocateDst(ctx, plan.dst_shape, dst));
      const TensorDesc& desc = plan.reorder.desc.dst;
      if (!desc.is_dense() || desc.offset() > 0) memset((*dst)->data(), 0, desc.size_bytes());
      return absl::OkStatus();
    }
    int reused;
    TF_RETURN_IF_ERROR(AllocateDst(ctx, {kInto}, plan.dst_shape, dst, &reused));
    const Tensor& into = ctx->input(kInto);
    if (reused < 0 && into.NumElements() > 0) {
      memcpy((*dst)->data(), into.data(), into.TotalBytes());
    }
    return absl::OkStatus();
  }

  static std::string Describe(OpKernelContext* ctx, const ReorderOpPlan& plan) {
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
