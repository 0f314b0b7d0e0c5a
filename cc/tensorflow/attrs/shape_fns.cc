#include "cc/tensorflow/attrs/shape_fns.h"

#include <algorithm>

#include "cc/layout/tensor_desc.h"

namespace bd {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

namespace {

bool Differs(int64_t dim, int64_t expected) { return dim != kUnknown && dim != expected; }

int64_t NumElements(const PartialTensorShape& shape) {
  return shape.IsFullyDefined() ? shape.num_elements() : kUnknown;
}

// Of src [.., channels], whose rank is known: [.., dst_channels].
Status RowsShape(const PartialTensorShape& src, int64_t channels, int64_t dst_channels,
                 PartialTensorShape* dst) {
  const int last = src.dims() - 1;
  if (last < 0 || Differs(src.dim_size(last), channels)) {
    return Invalid("src must be [.., ", channels, "]; got ", src.DebugString());
  }
  auto dims = src.dim_sizes();
  dims[last] = dst_channels;
  return BuildShape(dims, dst);
}

}  // namespace

Status ReadPlane(const char* name, const PartialTensorShape& shape, Layout layout, int64_t channels,
                 Plane* plane) {
  Dims dims = {kUnknown, channels, kUnknown, kUnknown};
  TF_RETURN_IF_ERROR(ReadDims(name, shape, layout, &dims));
  *plane = {dims[kN], dims[kH], dims[kW]};
  return absl::OkStatus();
}

Status MakeShape(Layout layout, int64_t channels, const Plane& p, PartialTensorShape* shape) {
  return ShapeOf(layout, {p.n, channels, p.h, p.w}, shape);
}

Status MakeView(Layout layout, int64_t channels, const ChannelPart& part, const Plane& p,
                TensorView* view) {
  TensorView whole;
  const Dims dims = {p.n, part.tensor_channels(channels), p.h, p.w};
  std::string error = TensorView::Make(DataType::f32, layout, dims, 0, &whole);
  if (error.empty()) error = whole.FirstChannels(channels, view);
  return error.empty() ? absl::OkStatus() : Invalid(error);
}

Status ResolveWindows(const WindowAttrs& attrs, const Plane& src, Window1d* h, Window1d* w) {
  const struct {
    const char* name;
    const Window1d& attr;
    int64_t size;
    Window1d* window;
  } axes[] = {{"height", attrs.h, src.h, h}, {"width", attrs.w, src.w, w}};
  for (const auto& axis : axes) {
    *axis.window = axis.attr;
    axis.window->size = axis.size;
    if (axis.size == kUnknown) {
      axis.window->out = kUnknown;
      continue;
    }
    const std::string error = ResolveWindow(attrs.padding, axis.window);
    if (!error.empty()) return Invalid(axis.name, ": ", error);
  }
  return absl::OkStatus();
}

Status MakeOperandShapes(Layout layout, int64_t channels, const Plane& dst, OperandShapes* shapes) {
  *shapes = OperandShapes();
  shapes->channels = channels;
  TF_RETURN_IF_ERROR(MakeShape(layout, channels, dst, &shapes->tensor));
  auto& accepted = shapes->sample_channel;
  TF_RETURN_IF_ERROR(MakeShape(layout, channels, {dst.n, 1, 1}, &accepted.emplace_back()));
  if (layout != Layout::nhwc) return absl::OkStatus();
  return BuildShape({dst.n, channels}, &accepted.emplace_back());
}

Status CheckOperands(const ChainAttrs& attrs, const std::vector<PartialTensorShape>& args,
                     const OperandShapes& shapes) {
  for (int i = 0; i < attrs.chain.len(); ++i) {
    const PostOp& op = attrs.chain.entries()[i];
    if (op.kind == PostOpKind::kEltwise) continue;
    const PartialTensorShape& arg = args[op.operand.input];
    const auto fits = [&](const PartialTensorShape& one) { return arg.IsCompatibleWith(one); };
    if (op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor) {
      if (fits(shapes.tensor)) continue;
      return InvalidEntry(attrs.chain, i, "the operand must have the shape and layout of ",
                          shapes.whose, ", ", shapes.tensor.DebugString(), "; got ",
                          arg.DebugString());
    }
    if (op.shape == OperandShape::kSampleChannel) {
      if (shapes.sample_channel.empty()) {
        return InvalidEntry(attrs.chain, i, "dst has no samples; use a channel operand");
      }
      if (std::any_of(shapes.sample_channel.begin(), shapes.sample_channel.end(), fits)) continue;
      return InvalidEntry(attrs.chain, i, "the operand must be ",
                          shapes.sample_channel.front().DebugString(), "; got ", arg.DebugString());
    }
    const int64_t elements = NumElements(arg);
    const int64_t needed = op.shape == OperandShape::kScalar ? 1 : shapes.channels;
    if (elements != kUnknown && op.operand.offset > elements - needed) {
      return InvalidEntry(attrs.chain, i, "the operand has ", elements, " elements, not the ",
                          needed, " needed from element ", op.operand.offset, " on");
    }
  }
  return absl::OkStatus();
}

Status CheckWeightsSize(const PartialTensorShape& weights, int64_t size, int64_t offset) {
  const int64_t elements = NumElements(weights);
  if (elements == kUnknown || offset <= elements - size) return absl::OkStatus();
  return Invalid("weights have ", elements, " elements, not the ", size,
                 " of weights_shape from weights_offset = ", offset, " on");
}

Status SampleChannelShape(Layout layout, bool flat, int64_t n, int64_t channels,
                          PartialTensorShape* shape) {
  return flat ? BuildShape({n, channels}, shape) : MakeShape(layout, channels, {n, 1, 1}, shape);
}

Status ConvShape(const ConvAttrs& attrs, const PartialTensorShape& src,
                 const PartialTensorShape& weights, const std::vector<PartialTensorShape>& args,
                 PartialTensorShape* dst) {
  Plane plane;
  Window1d h, w;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs.src_layout,
                               attrs.src_part.tensor_channels(attrs.channels), &plane));
  TF_RETURN_IF_ERROR(ResolveWindows(attrs.window, plane, &h, &w));
  const Plane dst_plane = {plane.n, h.out, w.out};
  TF_RETURN_IF_ERROR(CheckWeightsSize(weights, attrs.weights_size(), attrs.weights_offset));
  OperandShapes shapes;
  TF_RETURN_IF_ERROR(MakeOperandShapes(attrs.dst_layout, attrs.oc(), dst_plane, &shapes));
  if (attrs.pool_h * attrs.pool_w > 1) shapes.whose = "dst before pooling";
  TF_RETURN_IF_ERROR(CheckOperands(attrs.post_ops, args, shapes));
  const auto pooled = [](int64_t size, int64_t by) { return size == kUnknown ? size : size / by; };
  TF_RETURN_IF_ERROR(MakeShape(attrs.dst_layout, attrs.dst_part.tensor_channels(attrs.oc()),
                               {plane.n, pooled(h.out, attrs.pool_h), pooled(w.out, attrs.pool_w)},
                               dst));
  return attrs.dst_part.CheckInto(args, *dst);
}

Status ConvDepthwiseShape(const ConvDepthwiseAttrs& attrs, const PartialTensorShape& src,
                          const PartialTensorShape& weights,
                          const PartialTensorShape& depthwise_weights,
                          const std::vector<PartialTensorShape>& args,
                          const std::vector<PartialTensorShape>& depthwise_args,
                          PartialTensorShape* dst) {
  PartialTensorShape between;
  TF_RETURN_IF_ERROR(ConvShape(attrs.first, src, weights, args, &between));
  return ConvDepthwiseAttrs::OfDepthwise(
      ConvShape(attrs.depthwise, between, depthwise_weights, depthwise_args, dst));
}

Status InnerProductShape(const InnerProductAttrs& attrs, const PartialTensorShape& src,
                         const PartialTensorShape& weights,
                         const std::vector<PartialTensorShape>& args, PartialTensorShape* dst) {
  *dst = PartialTensorShape();
  if (!src.unknown_rank()) TF_RETURN_IF_ERROR(RowsShape(src, attrs.ic(), attrs.oc(), dst));
  TF_RETURN_IF_ERROR(CheckWeightsSize(weights, attrs.weights_size(), attrs.weights_offset));
  OperandShapes shapes{*dst, attrs.oc(), {}};
  if (dst->unknown_rank() || dst->dims() > 1) {  // samples are the first dimension
    const int64_t samples = dst->unknown_rank() ? kUnknown : dst->dim_size(0);
    TF_RETURN_IF_ERROR(BuildShape({samples, attrs.oc()}, &shapes.sample_channel.emplace_back()));
  }
  return CheckOperands(attrs.post_ops, args, shapes);
}

Status EltwiseShape(const EltwiseAttrs& attrs, const PartialTensorShape& src,
                    const std::vector<PartialTensorShape>& args, PartialTensorShape* dst) {
  if (attrs.layout == Layout::nhwc && (src.unknown_rank() || src.dims() != 4)) {
    *dst = PartialTensorShape();
    OperandShapes shapes;
    shapes.channels = attrs.channels;
    if (src.unknown_rank()) {
      shapes.sample_channel.emplace_back();  // it may be [N, H, W, C]
    } else {
      TF_RETURN_IF_ERROR(RowsShape(src, attrs.channels, attrs.channels, dst));
    }
    shapes.tensor = *dst;
    return CheckOperands(attrs.post_ops, args, shapes);
  }
  Plane plane;
  TF_RETURN_IF_ERROR(
      ReadPlane("src", src, attrs.layout, attrs.src_part.tensor_channels(attrs.channels), &plane));
  OperandShapes shapes;
  TF_RETURN_IF_ERROR(MakeOperandShapes(attrs.layout, attrs.channels, plane, &shapes));
  TF_RETURN_IF_ERROR(CheckOperands(attrs.post_ops, args, shapes));
  TF_RETURN_IF_ERROR(
      MakeShape(attrs.layout, attrs.dst_part.tensor_channels(attrs.channels), plane, dst));
  return attrs.dst_part.CheckInto(args, *dst);
}

Status PoolShape(const PoolAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                 PartialTensorShape* dst) {
  Plane plane;
  Window1d h, w;
  TF_RETURN_IF_ERROR(ReadPlane("src", inputs[0], Layout::nChw16c,
                               attrs.src_part.tensor_channels(attrs.channels), &plane));
  TF_RETURN_IF_ERROR(ResolveWindows(attrs.window, plane, &h, &w));
  const Plane dst_plane = {plane.n, h.out, w.out};
  TF_RETURN_IF_ERROR(
      MakeShape(Layout::nChw16c, attrs.dst_part.tensor_channels(attrs.channels), dst_plane, dst));
  return attrs.dst_part.CheckInto(inputs, *dst);
}

Status CheckPoolGradShapes(const PoolAttrs& attrs, const std::vector<PartialTensorShape>& inputs) {
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(PoolShape(attrs, {inputs[1]}, &dst));
  for (int i : {0, 2}) {
    if (inputs[i].IsCompatibleWith(dst)) continue;
    return Invalid(i == 0 ? "ddst" : "dst", " must have the shape of the result, ",
                   dst.DebugString(), "; got ", inputs[i].DebugString());
  }
  return absl::OkStatus();
}

Status GlobalPoolShape(const GlobalPoolAttrs& attrs, const PartialTensorShape& src,
                       PartialTensorShape* dst) {
  Plane plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c, attrs.channels, &plane));
  return SampleChannelShape(attrs.dst_layout, attrs.flat_dst, plane.n, attrs.channels, dst);
}

Status SqueezeExciteShape(const SqueezeExciteAttrs& attrs, const PartialTensorShape& src,
                          const std::vector<PartialTensorShape>& weights, PartialTensorShape* dst) {
  static constexpr const char* kNames[] = {"reduce_weights", "reduce_bias", "expand_weights",
                                           "expand_bias"};
  Plane plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c, attrs.channels, &plane));
  for (int i = 0; i < 4; ++i) {
    const int64_t elements = NumElements(weights[i]);
    if (elements == kUnknown || attrs.offsets[i] <= elements - attrs.size(i)) continue;
    return Invalid(kNames[i], " of ", elements, " elements must have ", attrs.size(i), " for ",
                   attrs.channels, " channels and ", attrs.squeezed,
                   " squeezed ones, from element ", attrs.offsets[i], " on");
  }
  return attrs.scale_src
             ? MakeShape(Layout::nChw16c, attrs.channels, plane, dst)
             : SampleChannelShape(attrs.dst_layout, attrs.flat_dst, plane.n, attrs.channels, dst);
}

Status CheckSoftmaxShape(const PartialTensorShape& src) {
  if (src.unknown_rank() || src.dims() >= 1) return absl::OkStatus();
  return Invalid("softmax along the last axis: src must have 1 dimension or more; got ",
                 src.DebugString());
}

Status ConcatShape(const ConcatAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                   PartialTensorShape* dst) {
  PartialTensorShape common;  // [N, ?, H, W, 16]
  for (size_t i = 0; i < attrs.channels.size(); ++i) {
    const std::string name = "values[" + std::to_string(i) + "]";
    Plane plane;
    TF_RETURN_IF_ERROR(
        ReadPlane(name.c_str(), inputs[i], Layout::nChw16c, attrs.src_channels(i), &plane));
    PartialTensorShape free_channels, merged;
    TF_RETURN_IF_ERROR(BuildShape({plane.n, kUnknown, plane.h, plane.w, 16}, &free_channels));
    if (!common.MergeWith(free_channels, &merged).ok()) {
      return Invalid(name, " ", inputs[i].DebugString(),
                     " must have the batch, height and width of the values before it, ",
                     common.DebugString());
    }
    common = merged;
  }
  TF_RETURN_IF_ERROR(MakeShape(Layout::nChw16c,
                               attrs.dst_part.tensor_channels(attrs.dst_channels()),
                               {common.dim_size(0), common.dim_size(2), common.dim_size(3)}, dst));
  return attrs.dst_part.CheckInto(inputs, *dst);
}

PartialTensorShape InputShape(InferenceContext* c, int i) {
  const ShapeHandle shape = c->input(i);
  if (!c->RankKnown(shape)) return PartialTensorShape();
  std::vector<int64_t> dims(c->Rank(shape));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = c->Value(c->Dim(shape, d));
  // Shape functions before this one may promise what no tensor can have: it tells nothing.
  PartialTensorShape known;
  return BuildShape(dims, &known).ok() ? known : PartialTensorShape();
}

std::vector<PartialTensorShape> InputShapes(InferenceContext* c, int first) {
  std::vector<PartialTensorShape> shapes;
  for (int i = first; i < c->num_inputs(); ++i) shapes.push_back(InputShape(c, i));
  return shapes;
}

Status SetOutputShape(InferenceContext* c, const PartialTensorShape& dst, bool keeps_batch) {
  ShapeHandle shape;
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(dst, &shape));
  // The same symbol lets optimizers see that.
  if (keeps_batch && !dst.unknown_rank() && dst.dim_size(0) == kUnknown &&
      c->RankKnown(c->input(0))) {
    TF_RETURN_IF_ERROR(c->ReplaceDim(shape, 0, c->Dim(c->input(0), 0), &shape));
  }
  c->set_output(0, shape);
  return absl::OkStatus();
}

}  // namespace bd
