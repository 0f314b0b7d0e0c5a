// BlockdnnConv: plan by input shapes, weights packed at first use, run.
#include <memory>
#include <string>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/kernels/verbose.h"
#include "cc/kernels/weights_cache.h"
#include "cc/ops/attrs.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kWeights = 1, kFirstArg = 2;

struct ConvOpPlan {
  ConvPlan conv;
  TensorShape dst_shape;
};

ConvAlgorithm AlgorithmOf(const std::string& name) {
  if (name == "direct") return ConvAlgorithm::kDirect;
  return name == "winograd" ? ConvAlgorithm::kWinograd : ConvAlgorithm::kAuto;
}

class ConvOp : public PoolOpKernel {
 public:
  explicit ConvOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    weights_ = std::make_unique<WeightsCache>(attrs_.weights_offset, attrs_.constant_weights);
    const int arg = attrs_.post_ops.ReusableArg();
    if (arg >= 0) reusable_inputs_.push_back(kFirstArg + arg);
  }

  void Compute(OpKernelContext* ctx) override {
    std::shared_ptr<const ConvOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](ConvOpPlan* made) { return MakePlan(ctx, made); }, &plan));
    const ConvPlan& conv = plan->conv;
    Tensor* dst;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, reusable_inputs_, plan->dst_shape, &dst));
    if (dst->NumElements() == 0) return;

    std::shared_ptr<const PackedWeights> kept;
    OP_REQUIRES_OK(ctx, weights_->Get(conv, ctx->input(kWeights), pool(), &kept));
    // Packed weights of this call only, then the plan's own scratch.
    const int64_t pack_bytes =
        kept != nullptr ? 0 : RoundUp(conv.packed_floats * int64_t{sizeof(float)});
    Tensor scratch;
    char* memory;
    OP_REQUIRES_OK(ctx, AllocateScratch(ctx, pack_bytes + conv.scratch_bytes(), &scratch, &memory));
    if (kept == nullptr) {
      PackConvWeights(conv, InputData(ctx, kWeights) + attrs_.weights_offset,
                      reinterpret_cast<float*>(memory), pool());
    }

    const ArgPointers args(ctx, kFirstArg);
    ConvBuffers buffers;
    buffers.src = InputData(ctx, kSrc);
    buffers.packed = kept != nullptr ? kept->data.get() : reinterpret_cast<float*>(memory);
    buffers.args = args.data();
    buffers.dst = static_cast<float*>(dst->data());
    buffers.scratch = memory + pack_bytes;
    RunLogged([&] { return Describe(ctx, *plan); }, [&] { RunConv(conv, buffers, pool()); });
  }

 private:
  static int64_t RoundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  Status MakePlan(OpKernelContext* ctx, ConvOpPlan* plan) const {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(
        ConvShape(attrs_, src, InputShape(ctx, kWeights), InputShapes(ctx, kFirstArg), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    Window1d h, w;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs_.src_layout, attrs_.channels, &plane));
    TF_RETURN_IF_ERROR(ResolveWindows(attrs_.window, plane, &h, &w));
    ConvDesc desc;
    desc.n = plane.n;
    desc.ic = attrs_.channels;
    desc.ih = plane.h;
    desc.iw = plane.w;
    desc.oc = attrs_.oc();
    desc.oh = h.out;
    desc.ow = w.out;
    desc.kh = h.kernel;
    desc.kw = w.kernel;
    desc.sh = h.stride;
    desc.sw = w.stride;
    desc.dh = h.dilation;
    desc.dw = w.dilation;
    desc.pad_top = h.pad_before;
    desc.pad_left = w.pad_before;
    desc.groups = attrs_.groups;
    desc.src_layout = attrs_.src_layout;
    desc.dst_layout = attrs_.dst_layout;
    desc.algorithm = AlgorithmOf(attrs_.algorithm);
    desc.post_ops = attrs_.post_ops.chain;
    return FromCore(MakeConvPlan(desc, ActiveIsa(), pool().num_threads(), &plan->conv));
  }

  static std::string Describe(OpKernelContext* ctx, const ConvOpPlan& plan) {
    const ConvDesc& d = plan.conv.desc;
    return absl::StrCat("conv ", IsaName(plan.conv.isa), " ", plan.conv.algorithm_name(), " ",
                        LayoutName(d.src_layout), ctx->input(kSrc).shape().DebugString(), "->",
                        LayoutName(d.dst_layout), plan.dst_shape.DebugString(), " k", d.kh, "x",
                        d.kw, " s", d.sh, "x", d.sw, " d", d.dh, "x", d.dw, " p", d.pad_top, "x",
                        d.pad_left, " g", d.groups, " \"", d.post_ops.ToString(), "\"");
  }

  ConvAttrs attrs_;
  std::vector<int> reusable_inputs_;  // the operand of sum, where dst may take its memory
  PlanCache<ConvOpPlan> plans_;
  std::unique_ptr<WeightsCache> weights_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConv").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ConvOp);

}  // namespace
}  // namespace bd
