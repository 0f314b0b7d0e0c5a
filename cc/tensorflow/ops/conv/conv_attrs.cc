#include "cc/tensorflow/ops/conv/conv_attrs.h"

#include <functional>
#include <numeric>

namespace bd {

void WeightsAttrs::VisitAlgorithm(AttrVisitor& v) {
  v.Choice("algorithm", &algorithm,
           {{"auto", ConvAlgorithm::kAuto},
            {"direct", ConvAlgorithm::kDirect},
            {"winograd", ConvAlgorithm::kWinograd},
            {"paired", ConvAlgorithm::kFip},
            {"auto_small", ConvAlgorithm::kAutoSmall},
            {"auto_smallest", ConvAlgorithm::kAutoSmallest}},
           "auto");
}

void WeightsAttrs::VisitLayouts(AttrVisitor& v) {
  v.Choice("src_layout", &src_layout, {Layout::nhwc, Layout::nChw16c});
  v.Choice("dst_layout", &dst_layout, {Layout::nhwc, Layout::nChw16c});
}

int64_t WeightsAttrs::weights_size() const {
  return std::accumulate(weights_shape.begin(), weights_shape.end(), Size(1), std::multiplies<>())
      .value();
}

Status WeightsAttrs::CheckWeightsShape(size_t rank, int oc_axis, const char* meaning) {
  TF_RETURN_IF_ERROR(CheckList("weights_shape", weights_shape, rank, 1, meaning));
  if (!Size(weights_size()).fits()) {
    return Invalid("weights_shape ", Text(weights_shape), " has too many elements");
  }
  oc = weights_shape[oc_axis];
  return absl::OkStatus();
}

Status WeightsAttrs::CheckPartsAndChain() {
  TF_RETURN_IF_ERROR(src_part.Check("src_part", src_layout, channels));
  TF_RETURN_IF_ERROR(dst_part.Check(dst_layout, oc));
  return post_ops.Check();
}

Status WeightsAttrs::DstShape(const PartialTensorShape& weights, const ShapeList& args,
                              const Plane& result, const Plane& dst_plane,
                              PartialTensorShape* dst) const {
  TF_RETURN_IF_ERROR(CheckWeightsSize(weights, weights_size(), weights_offset));
  OperandShapes shapes;
  TF_RETURN_IF_ERROR(MakeOperandShapes(dst_layout, oc, result, &shapes));
  if (&result != &dst_plane) shapes.whose = "dst before pooling";
  TF_RETURN_IF_ERROR(CheckOperands(post_ops, args, shapes));
  TF_RETURN_IF_ERROR(MakeShape(dst_layout, dst_part.tensor_channels(oc), dst_plane, dst));
  return dst_part.CheckInto(args, *dst);
}

Status WeightsAttrs::Views(DataType src_dtype, DataType dst_dtype, const Plane& src_plane,
                           const Plane& dst_plane, TensorView* src, TensorView* dst) const {
  TF_RETURN_IF_ERROR(MakeView(src_dtype, src_layout, channels, src_part, src_plane, src));
  return MakeView(dst_dtype, dst_layout, oc, dst_part, dst_plane, dst);
}

Status ConvAttrs::CheckWeights() {
  TF_RETURN_IF_ERROR(CheckWeightsShape(4, 3, "[kh, kw, ic / groups, oc]"));
  if (channels % groups != 0 || oc % groups != 0) {
    return Invalid("groups = ", groups, " must divide both the ", channels,
                   " input channels and the ", oc, " output channels");
  }
  if (weights_shape[2] != channels / groups) {
    return Invalid("weights_shape ", Text(weights_shape),
                   " must have channels / groups = ", channels, " / ", groups, " = ",
                   channels / groups, " as its third dimension");
  }
  window.kernel = {weights_shape[0], weights_shape[1]};
  return window.Check();
}

Status ConvAttrs::CheckSrcBlocks() const {
  if (src_blocks.empty()) return absl::OkStatus();
  constexpr int64_t kBlockChannels = 16;
  const int64_t count = static_cast<int64_t>(src_blocks.size()), wide = src_part.total;
  int64_t least = 0;
  for (int64_t block : src_blocks) {
    if (block < least || block >= wide / kBlockChannels) {
      return Invalid("src_blocks ", Text(src_blocks), " must ascend from 0 on and below ",
                     wide / kBlockChannels, ", the blocks of src_part = [0, ", wide, "]");
    }
    least = block + 1;
  }
  if (src_part.first == 0 && wide % kBlockChannels == 0 && channels == count * kBlockChannels) {
    return absl::OkStatus();
  }
  return Invalid("src_blocks are ", count,
                 " blocks of 16 channels of src_part = [0, a multiple of 16]; got src_part = [",
                 src_part.first, ", ", wide, "] and channels = ", channels);
}

Status ConvAttrs::CheckPool() const {
  if (pool_window.empty()) return absl::OkStatus();
  if (pool_window != std::vector<int64_t>{2, 2}) {
    return Invalid("pool must be [2, 2] or nothing; got ", Text(pool_window),
                   ": use an op of its own for other windows");
  }
  if (dst_layout == Layout::nChw16c) return absl::OkStatus();
  return Invalid("pool needs dst_layout nChw16c; reorder its result");
}

Status ConvAttrs::Shape(const PartialTensorShape& src, const PartialTensorShape& weights,
                        const ShapeList& args, PartialTensorShape* dst) const {
  Plane plane;
  Window1d h, w;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, src_layout, src_channels(), &plane));
  TF_RETURN_IF_ERROR(ResolveWindows(window, plane, &h, &w));
  // Operands are those of the convolution, into that of the pooling.
  const auto pooled = [](int64_t size, int64_t by) { return size == kUnknown ? size : size / by; };
  const Plane result = {plane.n, h.out, w.out};
  const Plane dst_plane = {plane.n, pooled(h.out, pool_h()), pooled(w.out, pool_w())};
  return DstShape(weights, args, result, pool_window.empty() ? result : dst_plane, dst);
}

Status ConvAttrs::Describe(DataType dtype, const PartialTensorShape& src, ConvDesc* desc) const {
  Plane plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, src_layout, src_channels(), &plane));
  Windows& windows = desc->windows;
  TF_RETURN_IF_ERROR(ResolveWindows(window, plane, &windows.h, &windows.w));
  desc->pool_h = pool_h();
  desc->pool_w = pool_w();
  const Plane result = {plane.n, windows.h.out / pool_h(), windows.w.out / pool_w()};
  TF_RETURN_IF_ERROR(Views(dtype, dst_dtype, plane, result, &desc->src, &desc->dst));
  desc->groups = groups;
  desc->algorithm = algorithm;
  desc->post_ops = post_ops.chain;
  desc->src_blocks = src_blocks;
  return absl::OkStatus();
}

PackRequest WeightsOfConv(const ConvPlan& plan, WeightsPacker pack, const float* src) {
  const ConvDesc& d = plan.desc;
  const int64_t plain = d.kh() * d.kw() * d.ic() / d.groups * d.oc() * SizeOf(plan.pack_key.dtype);
  return {plan.pack_key,
          {d.kh(), d.kw(), d.ic() / d.groups, d.oc(), d.groups},
          plan.packed_bytes,
          plan.reads_plain_weights ? plain : 0,
          pack,
          nullptr,
          [&plan, src] { return ConvWeightsExponent(plan, src); }};
}

void FillConvMemoryPlan(const ConvPlan& plan, MemoryPlan* memory) {
  memory->algorithm = plan.algorithm_name();
  memory->note = plan.note;
  memory->packed_weights = plan.reads_plain_weights ? 0 : plan.packed_bytes;
  for (const auto& size : plan.blocking) {
    if (size.second > 0) memory->blocking.push_back(size);
  }
}

}  // namespace bd
