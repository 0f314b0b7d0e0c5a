// BlockdnnShuffle.
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/shuffle/shuffle.h"
#include "cc/tensorflow/attrs/movement/shuffle_attrs.h"
#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/op_base/plan_cache.h"
#include "tensorflow/core/framework/types.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

class ShuffleOp : public PoolOpKernel {
 public:
  explicit ShuffleOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    std::shared_ptr<const ShufflePlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](ShufflePlan* made) { return MakePlan(ctx, made); }, &plan));
    const Tensor& src = ctx->input(kSrc);
    if (plan->method == ShuffleMethod::kCopy) {
      // Not even that: dst is src.
      RunLogged([&] { return Describe(src, *plan); }, [&] { ctx->set_output(0, src); });
      return;
    }
    Tensor* dst;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, src.shape(), &dst));
    RunLogged([&] { return Describe(src, *plan); },
              [&] { RunShuffle(*plan, src.data(), dst->data(), pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    Layout layout;
    if (!ParseLayout(attrs_.layout, &layout)) return {};
    return BlockedTensors()
        .Input(kSrc, layout, {attrs_.channels})
        .Output(0, layout, {attrs_.channels});
  }

 private:
  Status MakePlan(OpKernelContext* ctx, ShufflePlan* plan) const {
    ShuffleView view;
    TF_RETURN_IF_ERROR(ViewForShuffle(attrs_, InputShape(ctx, kSrc), &view));
    ShuffleDesc desc;
    desc.outer = view.outer;
    desc.channels = view.channels;
    desc.inner = view.inner;
    desc.group = view.group;
    desc.block = view.block;
    desc.element_bytes = tensorflow::DataTypeSize(ctx->input(kSrc).dtype());
    return FromCore(MakeShufflePlan(desc, ActiveIsa(), plan));
  }

  std::string Describe(const Tensor& src, const ShufflePlan& plan) const {
    return absl::StrCat("shuffle ", IsaName(ActiveIsa()), " ", MethodName(plan.method), " ",
                        tensorflow::DataTypeString(src.dtype()), " ", attrs_.layout,
                        src.shape().DebugString(), " axis ", attrs_.axis, " group ",
                        plan.desc.group);
  }

  static const char* MethodName(ShuffleMethod method) {
    switch (method) {
      case ShuffleMethod::kCopy:
        return "forward";
      case ShuffleMethod::kRows:
        return "rows";
      case ShuffleMethod::kPermute:
        return "permute";
      default:
        return "transpose";
    }
  }

  ShuffleAttrs attrs_;
  PlanCache<ShufflePlan> plans_;
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnShuffle").Device(tensorflow::DEVICE_CPU), ShuffleOp);

}  // namespace
}  // namespace bd
