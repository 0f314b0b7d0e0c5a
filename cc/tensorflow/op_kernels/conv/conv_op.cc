#include "cc/tensorflow/op_kernels/conv/conv_op.h"

#include <map>
#include <utility>

namespace bd {

ConvAlgorithm AlgorithmOf(const std::string& name) {
  static const auto* const algorithms = new std::map<std::string, ConvAlgorithm>{
      {"auto", ConvAlgorithm::kAuto},
      {"direct", ConvAlgorithm::kDirect},
      {"winograd", ConvAlgorithm::kWinograd},
      {"paired", ConvAlgorithm::kFip},
      {"auto_small", ConvAlgorithm::kAutoSmall},
      {"auto_smallest", ConvAlgorithm::kAutoSmallest},
  };
  return algorithms->at(name);  // the op's definition allows no others
}

namespace {

std::string PoolNote(const ConvDesc& d) {
  return d.pooled() ? absl::StrCat(" pool ", d.pool_h, "x", d.pool_w) : "";
}

// `notes` say how this execution got its memory.
std::string LogLine(const char* primitive, OpKernelContext* ctx, const ConvOpPlan& plan,
                    const std::string& notes) {
  const ConvDesc& d = plan.conv.desc;
  return absl::StrCat(primitive, " ", IsaName(plan.conv.isa), " ", plan.conv.algorithm_name(), " ",
                      LayoutName(d.src_layout), ctx->input(0).shape().DebugString(), "->",
                      LayoutName(d.dst_layout), plan.dst_shape.DebugString(), " ", WindowNote(d),
                      " g", d.groups, plan.conv.note, PoolNote(d), " scratch ",
                      plan.conv.scratch_bytes(), notes, " \"", d.post_ops.ToString(), "\"");
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
  desc->pool_h = attrs.pool_h;
  desc->pool_w = attrs.pool_w;
  desc->src_image_blocks = attrs.src_part.image_blocks();
  desc->src_blocks = attrs.src_blocks;
  desc->dst_image_blocks = attrs.dst_part.image_blocks();
  return absl::OkStatus();
}

std::string WindowNote(const ConvDesc& d) {
  return absl::StrCat("k", d.kh, "x", d.kw, " s", d.sh, "x", d.sw, " d", d.dh, "x", d.dw, " p",
                      d.pad_top, "x", d.pad_left);
}

std::string PacksNote(int64_t bytes) { return bytes > 0 ? absl::StrCat(" packs ", bytes) : ""; }

Status PlanConvOp(const ConvOpSpec& spec, const InputShapeList& inputs, bool changes_weights,
                  int threads, ConvOpPlan* plan) {
  ConvDesc desc;
  TF_RETURN_IF_ERROR(spec.Describe(inputs, &desc, &plan->dst_shape));
  desc.changes_weights = changes_weights;
  return FromCore(MakeConvPlan(desc, ActiveIsa(), threads, &plan->conv));
}

void FillMemoryPlan(const ConvPlan& conv, MemoryPlan* plan) {
  plan->algorithm = conv.algorithm_name();
  plan->scratch = conv.scratch;
  plan->packed_weights = conv.reads_plain_weights ? 0 : conv.packed_bytes;
  for (const auto& size : conv.blocking) {
    if (size.second > 0) plan->blocking.push_back(size);
  }
}

Status TakeWeights(OpKernelContext* ctx, int weights, const float* src, const ConvPlan& plan,
                   ThreadPool& pool, WeightsCache* cache, WeightsLease* lease) {
  const ConvDesc& d = plan.desc;
  const auto pack = [&](const void* plain, void* packed) {
    PackConvWeights(plan, static_cast<const float*>(plain), static_cast<float*>(packed), pool, src);
  };
  const int64_t plain = d.kh * d.kw * d.ic / d.groups * d.oc * int64_t{sizeof(float)};
  return cache->Take(ctx, weights,
                     {plan.pack_key,
                      {d.kh, d.kw, d.ic / d.groups, d.oc, d.groups},
                      plan.packed_bytes,
                      plan.reads_plain_weights ? plain : 0,
                      pack},
                     lease);
}

void ConvOpBase::Init(const ChainAttrs& chain, int64_t weights_offset, bool constant_weights) {
  weights_ = std::make_unique<WeightsCache>(weights_offset, constant_weights);
  for (int arg : chain.chain.ReusableInputs())
    reusable_inputs_.push_back(ConvOpSpec::kFirstArg + arg);
}

Status ConvOpBase::Resolve(OpKernelContext* ctx, ConvLaunch* launch) {
  const bool changing = weights_->changing();
  TF_RETURN_IF_ERROR((changing ? changing_plans_ : plans_)
                         .Get(
                             ctx,
                             [&](ConvOpPlan* made) {
                               return PlanConvOp(spec(), InputShapes(ctx, 0), changing,
                                                 pool().num_threads(), made);
                             },
                             &launch->plan));
  if (launch->dst_shape().num_elements() == 0) return absl::OkStatus();
  const ConvPlan& conv = launch->plan->conv;
  const ConvOpSpec::Parts parts = spec().parts();
  launch->src_offset = parts.src.offset(conv.desc.ih * conv.desc.iw);
  launch->dst_offset = parts.dst.offset(conv.desc.dst_h() * conv.desc.dst_w());
  return TakeWeights(ctx, ConvOpSpec::kWeights, InputData(ctx, ConvOpSpec::kSrc), conv, pool(),
                     weights_.get(), &launch->weights);
}

absl::Span<const int> ConvLaunch::fixed_inputs() const {
  static constexpr int kFixed[] = {ConvOpSpec::kWeights};
  return kFixed;
}

void ConvLaunch::Run(const LaunchMemory& memory, ThreadPool& pool) const {
  ConvBuffers buffers;
  buffers.src = memory.inputs[ConvOpSpec::kSrc] + src_offset;
  buffers.packed = weights.data;
  buffers.plain = weights.plain;
  buffers.args = memory.inputs + ConvOpSpec::kFirstArg;
  buffers.dst = memory.dst() + dst_offset;
  buffers.scratch = memory.scratch;
  RunConv(plan->conv, buffers, pool);
}

std::string ConvOpBase::Describe(OpKernelContext* ctx, const ConvLaunch& launch,
                                 bool in_place) const {
  const ConvPlan& conv = launch.plan->conv;
  const ConvOpSpec::Parts parts = spec().parts();
  const std::string notes =
      absl::StrCat(" ", scratchpad_.mode(), PacksNote(launch.weights.bytes_packed()),
                   SumNote(conv.desc.post_ops, in_place && !parts.dst.has_into),
                   PartNote(parts.src, parts.dst, in_place));
  return LogLine(primitive_, ctx, *launch.plan, notes);
}

}  // namespace bd
