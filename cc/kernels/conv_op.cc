#include "cc/kernels/conv_op.h"

#include "cc/base/verbose.h"

namespace bd {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::string LogLine(const char* primitive, OpKernelContext* ctx, const ConvOpPlan& plan,
                    bool in_place) {
  const ConvDesc& d = plan.conv.desc;
  return absl::StrCat(primitive, " ", IsaName(plan.conv.isa), " ", plan.conv.algorithm_name(), " ",
                      LayoutName(d.src_layout), ctx->input(0).shape().DebugString(), "->",
                      LayoutName(d.dst_layout), plan.dst_shape.DebugString(), " k", d.kh, "x", d.kw,
                      " s", d.sh, "x", d.sw, " d", d.dh, "x", d.dw, " p", d.pad_top, "x",
                      d.pad_left, " g", d.groups, " scratch ", plan.conv.scratch_bytes(),
                      SumNote(d.post_ops, in_place), " \"", d.post_ops.ToString(), "\"");
}

}  // namespace

void ConvOpBase::Init(const ChainAttrs& chain, int64_t weights_offset, bool constant_weights) {
  weights_offset_ = weights_offset;
  weights_ = std::make_unique<WeightsCache>(weights_offset, constant_weights);
  for (int arg : chain.chain.ReusableInputs()) reusable_inputs_.push_back(kFirstArg + arg);
}

Status ConvOpBase::MakePlan(OpKernelContext* ctx, ConvOpPlan* plan) const {
  ConvDesc desc;
  TF_RETURN_IF_ERROR(Describe(ctx, &desc, &plan->dst_shape));
  return FromCore(MakeConvPlan(desc, ActiveIsa(), pool().num_threads(), &plan->conv));
}

void ConvOpBase::Execute(OpKernelContext* ctx) {
  std::shared_ptr<const ConvOpPlan> plan;
  OP_REQUIRES_OK(ctx, plans_.Get(
                          ctx, [&](ConvOpPlan* made) { return MakePlan(ctx, made); }, &plan));
  const ConvPlan& conv = plan->conv;
  Tensor* dst;
  int reused;
  OP_REQUIRES_OK(ctx, AllocateDst(ctx, reusable_inputs_, plan->dst_shape, &dst, &reused));
  if (dst->NumElements() == 0) return;

  const float* weights = InputData(ctx, kWeights) + weights_offset_;
  const float* packed = conv.packing.as_is() ? weights : nullptr;
  if (packed != nullptr) PreferHugePages(weights, 4 * conv.desc.ic * conv.desc.oc);
  std::shared_ptr<const PackedWeights> kept;
  if (packed == nullptr) {
    OP_REQUIRES_OK(ctx, weights_->Get(conv, ctx->input(kWeights), pool(), &kept));
    if (kept != nullptr) packed = kept->data();
  }
  // Packed weights of this call only, then the plan's own scratch.
  const int64_t pack_bytes =
      packed != nullptr ? 0 : RoundUp(conv.packed_floats * int64_t{sizeof(float)});
  ScratchMemory scratch;
  OP_REQUIRES_OK(ctx, scratch.Allocate(ctx, pack_bytes + conv.scratch_bytes()));
  if (packed == nullptr) {
    float* packed_once = reinterpret_cast<float*>(scratch.data());
    PackConvWeights(conv, weights, packed_once, pool());
    packed = packed_once;
  }

  const ArgPointers args(ctx, kFirstArg);
  ConvBuffers buffers;
  buffers.src = InputData(ctx, kSrc);
  buffers.packed = packed;
  buffers.args = args.data();
  buffers.dst = static_cast<float*>(dst->data());
  buffers.scratch = scratch.data() + pack_bytes;
  RunLogged([&] { return LogLine(primitive_, ctx, *plan, reused >= 0); },
            [&] { RunConv(conv, buffers, pool()); });
}

}  // namespace bd
