#include "cc/kernels/conv_op.h"

#include <utility>

#include "cc/base/verbose.h"

namespace bd {

ConvAlgorithm AlgorithmOf(const std::string& name) {
  if (name == "direct") return ConvAlgorithm::kDirect;
  if (name == "compressed") return ConvAlgorithm::kCompressed;
  if (name == "auto_small") return ConvAlgorithm::kAutoSmall;
  return name == "winograd" ? ConvAlgorithm::kWinograd : ConvAlgorithm::kAuto;
}

namespace {

// "pool 2x2" where the convolution stores maxima, "pool 2x2 behind" where a second pass
// makes them.
std::string PoolNote(const ConvPlan& plan) {
  const ConvDesc& d = plan.desc;
  if (!d.pooled()) return "";
  return absl::StrCat(" pool ", d.pool_h, "x", d.pool_w, plan.pools_tiles ? "" : " behind");
}

// `notes` say how this execution got its memory.
std::string LogLine(const char* primitive, OpKernelContext* ctx, const ConvOpPlan& plan,
                    const char* algorithm, const std::string& notes) {
  const ConvDesc& d = plan.conv.desc;
  return absl::StrCat(primitive, " ", IsaName(plan.conv.isa), " ", algorithm, " ",
                      LayoutName(d.src_layout), ctx->input(0).shape().DebugString(), "->",
                      LayoutName(d.dst_layout), plan.dst_shape.DebugString(), " ", WindowNote(d),
                      " g", d.groups, d.src_scaled ? " src_scale" : "", PoolNote(plan.conv),
                      " scratch ", plan.conv.scratch_bytes(), notes, " \"", d.post_ops.ToString(),
                      "\"");
}

}  // namespace

Status DescribeConv(const ConvAttrs& attrs, const PartialTensorShape& src,
                    const PartialTensorShape& weights, const InputShapeList& args, ConvDesc* desc,
                    PartialTensorShape* dst) {
  TF_RETURN_IF_ERROR(ConvShape(attrs, src, weights, args, dst));
  Plane plane;
  Window1d h, w;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs.src_layout,
                               attrs.src_part.tensor_channels(attrs.channels), &plane));
  TF_RETURN_IF_ERROR(ResolveWindows(attrs.window, plane, &h, &w));
  desc->n = plane.n;
  desc->ic = attrs.channels;
  desc->ih = plane.h;
  desc->iw = plane.w;
  desc->oc = attrs.oc();
  desc->oh = h.out;
  desc->ow = w.out;
  desc->kh = h.kernel;
  desc->kw = w.kernel;
  desc->sh = h.stride;
  desc->sw = w.stride;
  desc->dh = h.dilation;
  desc->dw = w.dilation;
  desc->pad_top = h.pad_before;
  desc->pad_left = w.pad_before;
  desc->groups = attrs.groups;
  desc->src_layout = attrs.src_layout;
  desc->dst_layout = attrs.dst_layout;
  desc->algorithm = AlgorithmOf(attrs.algorithm);
  desc->post_ops = attrs.post_ops.chain;
  desc->src_scaled = attrs.src_scaled;
  desc->pool_h = attrs.pool_h;
  desc->pool_w = attrs.pool_w;
  desc->src_image_blocks = attrs.src_part.image_blocks();
  desc->dst_image_blocks = attrs.dst_part.image_blocks();
  return absl::OkStatus();
}

std::string WindowNote(const ConvDesc& d) {
  return absl::StrCat("k", d.kh, "x", d.kw, " s", d.sh, "x", d.sw, " d", d.dh, "x", d.dw, " p",
                      d.pad_top, "x", d.pad_left);
}

std::string PacksNote(int64_t bytes) { return bytes > 0 ? absl::StrCat(" packs ", bytes) : ""; }

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
      {"edge_columns", conv.edge_columns},
      {"source_blocks", conv.icb_chunk},
      {"tile_pitch", conv.tile_pitch},
      {"task_blocks", task_groups * conv.packing.group_blocks},
      {"lane_blocks", conv.scaled.count > 0 ? conv.packing.group_blocks : 0}};
  for (const auto& size : chosen) {
    if (size.second > 0) plan->blocking.push_back(size);
  }
}

void ConvOpBase::Init(const ChainAttrs& chain, int64_t weights_offset, bool constant_weights) {
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
  const ConvOpSpec::Parts parts = spec().parts();
  OP_REQUIRES_OK(ctx,
                 AllocateDst(ctx, parts.dst, reusable_inputs_, plan->dst_shape, &dst, &reused));
  if (dst->NumElements() == 0) return;

  WeightsLease weights;
  OP_REQUIRES_OK(ctx, weights_->Take(ctx, kWeights, InputData(ctx, kSrc), conv, pool(), &weights));
  ScratchpadMemory scratchpad;
  OP_REQUIRES_OK(ctx, scratchpad_.Take(ctx, conv.scratch_bytes(), &scratchpad));

  const ArgPointers args(ctx, kFirstArg);
  ConvBuffers buffers;
  buffers.src = InputData(ctx, kSrc) + parts.src.offset(conv.desc.ih * conv.desc.iw);
  buffers.packed = weights.data;
  buffers.plain = weights.plain;
  buffers.args = args.data();
  buffers.dst =
      static_cast<float*>(dst->data()) + parts.dst.offset(conv.desc.dst_h() * conv.desc.dst_w());
  if (conv.desc.src_scaled) buffers.src_scale = InputData(ctx, spec().src_scale());
  buffers.scratch = scratchpad.data();
  const auto notes = [&] {
    return absl::StrCat(" ", scratchpad_.mode(), PacksNote(weights.bytes_packed()),
                        SumNote(conv.desc.post_ops, reused >= 0 && !parts.dst.has_into),
                        PartNote(parts.src, parts.dst, reused >= 0));
  };
  // Weights that are not compressed after all are read as they are.
  const char* algorithm = weights.data == nullptr ? "rows" : conv.algorithm_name();
  RunLogged([&] { return LogLine(primitive_, ctx, *plan, algorithm, notes()); },
            [&] { RunConv(conv, buffers, pool()); });
}

}  // namespace bd
