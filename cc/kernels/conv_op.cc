#include "cc/kernels/conv_op.h"

#include <utility>

#include "cc/base/verbose.h"

namespace bd {
namespace {

// `notes` say how this execution got its memory.
std::string LogLine(const char* primitive, OpKernelContext* ctx, const ConvOpPlan& plan,
                    const std::string& notes) {
  const ConvDesc& d = plan.conv.desc;
  return absl::StrCat(primitive, " ", IsaName(plan.conv.isa), " ", plan.conv.algorithm_name(), " ",
                      LayoutName(d.src_layout), ctx->input(0).shape().DebugString(), "->",
                      LayoutName(d.dst_layout), plan.dst_shape.DebugString(), " k", d.kh, "x", d.kw,
                      " s", d.sh, "x", d.sw, " d", d.dh, "x", d.dw, " p", d.pad_top, "x",
                      d.pad_left, " g", d.groups, " scratch ", plan.conv.scratch_bytes(), notes,
                      " \"", d.post_ops.ToString(), "\"");
}

}  // namespace

Status PlanConvOp(const ConvOpSpec& spec, const InputShapeList& inputs, int threads,
                  ConvOpPlan* plan) {
  ConvDesc desc;
  TF_RETURN_IF_ERROR(spec.Describe(inputs, &desc, &plan->dst_shape));
  return FromCore(MakeConvPlan(desc, ActiveIsa(), threads, &plan->conv));
}

void FillMemoryPlan(const ConvPlan& conv, MemoryPlan* plan) {
  plan->algorithm = conv.algorithm_name();
  plan->scratch = conv.scratch;
  plan->packed_weights = conv.packing.as_is() ? 0 : conv.packed_floats * int64_t{sizeof(float)};
  const int64_t groups = static_cast<int64_t>(conv.groups.size());
  const int64_t task_groups = (groups + conv.group_splits - 1) / conv.group_splits;
  const std::pair<const char*, int64_t> chosen[] = {
      {"strip_pixels", conv.strip_pixels},
      {"strip_rows", conv.strip_rows},
      {"source_blocks", conv.icb_chunk},
      {"tile_pitch", conv.tile_pitch},
      {"task_blocks", task_groups * conv.packing.group_blocks}};
  for (const auto& size : chosen) {
    if (size.second > 0) plan->blocking.push_back(size);
  }
}

void ConvOpBase::Init(const ChainAttrs& chain, int64_t weights_offset, bool constant_weights) {
  weights_offset_ = weights_offset;
  weights_ = std::make_unique<WeightsCache>(weights_offset, constant_weights);
  for (int arg : chain.chain.ReusableInputs()) reusable_inputs_.push_back(kFirstArg + arg);
}

void ConvOpBase::Execute(OpKernelContext* ctx) {
  std::shared_ptr<const ConvOpPlan> plan;
  OP_REQUIRES_OK(ctx, plans_.Get(
                          ctx,
                          [&](ConvOpPlan* made) {
                            return PlanConvOp(spec(), InputShapes(ctx, 0), pool().num_threads(),
                                              made);
                          },
                          &plan));
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
  Tensor packed_now;  // for this call only
  if (packed == nullptr) {
    OP_REQUIRES_OK(ctx, ctx->allocate_temp(tensorflow::DT_FLOAT, TensorShape({conv.packed_floats}),
                                           &packed_now));
    float* data = static_cast<float*>(packed_now.data());
    PackConvWeights(conv, weights, data, pool());
    packed = data;
  }
  ScratchpadMemory scratchpad;
  OP_REQUIRES_OK(ctx, scratchpad_.Take(ctx, conv.scratch_bytes(), &scratchpad));

  const ArgPointers args(ctx, kFirstArg);
  ConvBuffers buffers;
  buffers.src = InputData(ctx, kSrc);
  buffers.packed = packed;
  buffers.args = args.data();
  buffers.dst = static_cast<float*>(dst->data());
  buffers.scratch = scratchpad.data();
  const auto notes = [&] {
    const size_t packs = packed_now.TotalBytes();
    return absl::StrCat(" ", scratchpad_.mode(), packs > 0 ? absl::StrCat(" packs ", packs) : "",
                        SumNote(conv.desc.post_ops, reused >= 0));
  };
  RunLogged([&] { return LogLine(primitive_, ctx, *plan, notes()); },
            [&] { RunConv(conv, buffers, pool()); });
}

}  // namespace bd
