#include "cc/tensorflow/attrs/shape_fns.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cc/layout/tensor_desc.h"

namespace bd {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

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

Status MakeView(DataType dtype, Layout layout, int64_t channels, const ChannelPart& part,
                const Plane& p, TensorView* view) {
  TensorView whole;
  const Dims dims = {p.n, part.tensor_channels(channels), p.h, p.w};
  std::string error = TensorView::Make(dtype, layout, dims, 0, &whole);
  if (error.empty()) error = whole.FirstChannels(channels, view);
  return FromCore(error);
}

Status ResolveAxis(const char* name, Padding padding, int64_t size, Window1d* window) {
  window->size = size;
  window->out = kUnknown;
  if (size == kUnknown) return absl::OkStatus();
  const std::string error = ResolveWindow(padding, window);
  return error.empty() ? absl::OkStatus() : Invalid(name, ": ", error);
}

Status ResolveWindows(const WindowAttrs& attrs, const Plane& src, Window1d* h, Window1d* w) {
  *h = attrs.h;
  *w = attrs.w;
  TF_RETURN_IF_ERROR(ResolveAxis("height", attrs.padding, src.h, h));
  return ResolveAxis("width", attrs.padding, src.w, w);
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

Status SampleChannelShape(Layout layout, int64_t n, int64_t channels, PartialTensorShape* shape) {
  return layout == Layout::nc ? BuildShape({n, channels}, shape)
                              : MakeShape(layout, channels, {n, 1, 1}, shape);
}

std::vector<PartialTensorShape> InputShapes(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes(c->num_inputs());
  for (int i = 0; i < c->num_inputs(); ++i) {
    const ShapeHandle shape = c->input(i);
    if (!c->RankKnown(shape)) continue;
    std::vector<int64_t> dims(c->Rank(shape));
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = c->Value(c->Dim(shape, d));
    // Shape functions before this one may promise what no tensor can have: it tells nothing.
    PartialTensorShape known;
    if (BuildShape(dims, &known).ok()) shapes[i] = known;
  }
  return shapes;
}

namespace {

// Of float32 in the 2^47 bytes that a process can address.
constexpr int64_t kMostElements = int64_t{1} << 45;

bool Fits(const PartialTensorShape& shape, const Dims& expected) {
  if (shape.dims() != expected.size()) return false;
  for (int i = 0; i < expected.size(); ++i) {
    if (Differs(shape.dim_size(i), expected[i])) return false;
  }
  return true;
}

// What an error calls `size` indices of the dimension.
std::string Count(char letter, int64_t size) {
  const char* words = letter == 'o'   ? " output channels"
                      : letter == 'i' ? " input channels"
                      : letter == 'g' ? " groups"
                                      : " channels";
  return absl::StrCat(size, words);
}

// "nChw16c, [N, 2, H, W, 16] for 17 channels"
std::string Expected(Layout layout, const Dims& dims) {
  const LayoutParts parts = PartsOf(layout);
  std::string shape, counts;
  for (int i = 0; i < parts.rank; ++i) {
    const int d = parts.order[i];
    const int64_t block = parts.block(d);
    const std::string letter(1, static_cast<char>(toupper(parts.letters[d])));
    absl::StrAppend(&shape, i > 0 ? ", " : "");
    if (dims[d] >= 0) {
      absl::StrAppend(&shape, dims[d] / block + (dims[d] % block != 0));
    } else {
      absl::StrAppend(&shape,
                      block > 1 ? absl::StrCat("ceil(", letter, " / ", block, ")") : letter);
    }
    if (block > 1 && dims[d] >= 0) {
      absl::StrAppend(&counts, counts.empty() ? " for " : " and ",
                      Count(parts.letters[d], dims[d]));
    }
  }
  for (int i = 0; i < parts.num_inner; ++i) absl::StrAppend(&shape, ", ", parts.inner_size[i]);
  return absl::StrCat(LayoutName(layout), ", [", shape, "]", counts);
}

}  // namespace

absl::Status BuildShape(absl::Span<const int64_t> dims, PartialTensorShape* shape) {
  // Without its zeros: plans multiply the sizes of an empty tensor, too.
  int64_t elements = 1;
  const bool fits = std::all_of(dims.begin(), dims.end(), [&](int64_t dim) {
    return dim <= 0 ||
           (!__builtin_mul_overflow(elements, dim, &elements) && elements <= kMostElements);
  });
  if (fits && PartialTensorShape::BuildPartialTensorShape(dims, shape).ok()) {
    return absl::OkStatus();
  }
  return Invalid("a tensor of [", absl::StrJoin(dims, ","),
                 "] is larger than any memory: give smaller sizes");
}

absl::Status ShapeOf(Layout layout, const Dims& dims, PartialTensorShape* shape) {
  const Dims sizes = PhysicalShape(layout, dims);
  return BuildShape(absl::MakeConstSpan(sizes.data(), sizes.size()), shape);
}

absl::Status ReadDims(const char* name, const PartialTensorShape& shape, Layout layout,
                      Dims* dims) {
  if (shape.unknown_rank()) return absl::OkStatus();
  if (!Fits(shape, PhysicalShape(layout, *dims))) {
    return Invalid(name, " must be ", Expected(layout, *dims), "; got ", shape.DebugString());
  }
  const LayoutParts parts = PartsOf(layout);
  for (int i = 0; i < parts.rank; ++i) {
    int64_t* dim = &(*dims)[parts.order[i]];
    if (parts.block(parts.order[i]) == 1 && *dim < 0) *dim = shape.dim_size(i);
  }
  return absl::OkStatus();
}

}  // namespace bd
