#include "cc/tensorflow/op_kernels/conv/conv_op.h"

#include <map>

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

Status DescribeConv(const ConvAttrs& attrs, const PartialTensorShape& src,
                    const PartialTensorShape& weights, const InputShapeList& args, ConvDesc* desc,
                    PartialTensorShape* dst) {
  TF_RETURN_IF_ERROR(ConvShape(attrs, src, weights, args, dst));
  Plane plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs.src_layout,
                               attrs.src_part.tensor_channels(attrs.channels), &plane));
  Windows& windows = desc->windows;
  TF_RETURN_IF_ERROR(ResolveWindows(attrs.window, plane, &windows.h, &windows.w));
  desc->pool_h = attrs.pool_h;
  desc->pool_w = attrs.pool_w;
  const Plane result = {plane.n, windows.h.out / attrs.pool_h, windows.w.out / attrs.pool_w};
  TF_RETURN_IF_ERROR(MakeView(attrs.src_layout, attrs.channels, attrs.src_part, plane, &desc->src));
  TF_RETURN_IF_ERROR(MakeView(attrs.dst_layout, attrs.oc(), attrs.dst_part, result, &desc->dst));
  desc->groups = attrs.groups;
  desc->algorithm = AlgorithmOf(attrs.algorithm);
  desc->post_ops = attrs.post_ops.chain;
  desc->src_blocks = attrs.src_blocks;
  return absl::OkStatus();
}

std::string WindowNote(const ConvDesc& d) {
  return absl::StrCat("k", d.kh(), "x", d.kw(), " s", d.sh(), "x", d.sw(), " d", d.dh(), "x",
                      d.dw(), " p", d.pad_top(), "x", d.pad_left());
}

ConvBuffers ConvOpMemory::buffers() const {
  ConvBuffers buffers;
  buffers.src = src;
  buffers.packed = weights[0].data;
  buffers.plain = weights[0].plain;
  buffers.args = args;
  buffers.dst = dst;
  buffers.scratch = scratch;
  return buffers;
}

PackRequest OneConvSpec::Weights(const ConvPlan& plan, int, WeightsPacker pack) {
  const ConvDesc& d = plan.desc;
  const int64_t plain = d.kh() * d.kw() * d.ic() / d.groups * d.oc() * int64_t{sizeof(float)};
  return {plan.pack_key,
          {d.kh(), d.kw(), d.ic() / d.groups, d.oc(), d.groups},
          plan.packed_bytes,
          plan.reads_plain_weights ? plain : 0,
          pack};
}

void OneConvSpec::FillMemoryPlan(const ConvPlan& plan, MemoryPlan* memory) {
  memory->algorithm = plan.algorithm_name();
  memory->scratch = plan.scratch;
  memory->packed_weights = plan.reads_plain_weights ? 0 : plan.packed_bytes;
  for (const auto& size : plan.blocking) {
    if (size.second > 0) memory->blocking.push_back(size);
  }
}

ConvOpNote OneConvSpec::Note(const ConvPlan& plan) {
  const ConvDesc& d = plan.desc;
  std::string window = absl::StrCat(WindowNote(d), " g", d.groups, plan.note);
  if (d.pooled()) absl::StrAppend(&window, " pool ", d.pool_h, "x", d.pool_w);
  return {plan.isa, plan.algorithm_name(), d.src.layout(), d.dst.layout(), window};
}

}  // namespace bd
