// What each op makes of the shapes it is given: one set of rules, applied to
// partly known shapes while a graph is built and to full ones when it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cc/layout/layout.h"
#include "cc/layout/tensor_view.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace bd {

using tensorflow::PartialTensorShape;

constexpr int64_t kUnknown = -1;  // a dimension that is not known yet

inline bool Differs(int64_t dim, int64_t expected) {
  return dim != kUnknown && expected != kUnknown && dim != expected;
}

// The shape of these dims, of which some may be kUnknown; an error where no memory could hold a
// tensor of it. TensorFlow's constructors end the process there.
absl::Status BuildShape(absl::Span<const int64_t> dims, PartialTensorShape* shape);

// The shape of a dense tensor in `layout`; dims may be kUnknown.
absl::Status ShapeOf(Layout layout, const Dims& dims, PartialTensorShape* shape);

// Checks `shape` against the layout and the dims, of which some may be kUnknown,
// and sets those that the shape tells. `name` is what errors call the tensor.
absl::Status ReadDims(const char* name, const PartialTensorShape& shape, Layout layout, Dims* dims);

// Batch and plane of an activation; any of them may be kUnknown.
struct Plane {
  int64_t n = kUnknown, h = kUnknown, w = kUnknown;
};

// Checks `shape` against layout and channels. `name` is what errors call it.
Status ReadPlane(const char* name, const PartialTensorShape& shape, Layout layout, int64_t channels,
                 Plane* plane);
Status MakeShape(Layout layout, int64_t channels, const Plane& plane, PartialTensorShape* shape);

// `channels` channels over a plane that is known, in a tensor of which they are `part`.
Status MakeView(DataType dtype, Layout layout, int64_t channels, const ChannelPart& part,
                const Plane& plane, TensorView* view);

// The windows over a plane of src: *h and *w get size, out and padding; out of an
// unknown size is kUnknown.
Status ResolveWindows(const WindowAttrs& attrs, const Plane& src, Window1d* h, Window1d* w);
// One of them, of which the kernel and the stride are set. `name` is what errors call the axis.
Status ResolveAxis(const char* name, Padding padding, int64_t size, Window1d* window);

// What the operands of a chain must look like.
struct OperandShapes {
  PartialTensorShape tensor;  // dst's
  int64_t channels = kUnknown;
  std::vector<PartialTensorShape> sample_channel;  // any of these; empty: not allowed
  const char* whose = "dst";                       // shape it is, for errors
};
Status MakeOperandShapes(Layout layout, int64_t channels, const Plane& dst, OperandShapes* shapes);

// Every operand of the chain against the shapes it is applied to.
Status CheckOperands(const ChainAttrs& attrs, const std::vector<PartialTensorShape>& args,
                     const OperandShapes& shapes);

// Of src [.., channels], whose rank is known: [.., dst_channels].
Status RowsShape(const PartialTensorShape& src, int64_t channels, int64_t dst_channels,
                 PartialTensorShape* dst);

// The product of sizes [first, end) of a shape that is known.
inline int64_t NumElements(const PartialTensorShape& shape, int first, int end) {
  int64_t elements = 1;
  for (int axis = first; axis < end; ++axis) elements *= shape.dim_size(axis);
  return elements;
}

// Elements of a tensor; kUnknown as long as its shape is.
inline int64_t NumElements(const PartialTensorShape& shape) {
  return shape.IsFullyDefined() ? shape.num_elements() : kUnknown;
}

// `size` elements from `offset` on must exist.
Status CheckWeightsSize(const PartialTensorShape& weights, int64_t size, int64_t offset);

// [N, C] (nc), [N, 1, 1, C] (nhwc) or [N, Cb, 1, 1, 16] (nChw16c): a value a sample and channel.
Status SampleChannelShape(Layout layout, int64_t n, int64_t channels, PartialTensorShape* shape);
// The layout of planes of one pixel that is the same memory.
inline Layout OfOnePixel(Layout layout) { return layout == Layout::nc ? Layout::nhwc : layout; }

// The inputs of a node being built.
std::vector<PartialTensorShape> InputShapes(tensorflow::shape_inference::InferenceContext* c);
}  // namespace bd
