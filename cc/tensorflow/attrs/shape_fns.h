// What each op makes of the shapes it is given: one set of rules, applied to
// partly known shapes while a graph is built and to full ones when it runs.
#ifndef CC_TENSORFLOW_ATTRS_SHAPE_FNS_H_
#define CC_TENSORFLOW_ATTRS_SHAPE_FNS_H_

#include <cstdint>
#include <vector>

#include "cc/layout/tensor_view.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/attrs/layout_shapes.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace bd {

// Batch and plane of an activation; any of them may be kUnknown.
struct Plane {
  int64_t n = kUnknown, h = kUnknown, w = kUnknown;
};

// Checks `shape` against layout and channels. `name` is what errors call it.
Status ReadPlane(const char* name, const PartialTensorShape& shape, Layout layout, int64_t channels,
                 Plane* plane);
Status MakeShape(Layout layout, int64_t channels, const Plane& plane, PartialTensorShape* shape);

// `channels` channels of float32 over a plane that is known, in a tensor of which they are `part`.
Status MakeView(Layout layout, int64_t channels, const ChannelPart& part, const Plane& plane,
                TensorView* view);

// The windows over a plane of src: *h and *w get size, out and padding; out of an
// unknown size is kUnknown.
Status ResolveWindows(const WindowAttrs& attrs, const Plane& src, Window1d* h, Window1d* w);

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

// `size` elements from `offset` on must exist.
Status CheckWeightsSize(const PartialTensorShape& weights, int64_t size, int64_t offset);

// [N, C] (flat), [N, 1, 1, C] or [N, Cb, 1, 1, 16]: a value a sample and channel.
Status SampleChannelShape(Layout layout, bool flat, int64_t n, int64_t channels,
                          PartialTensorShape* shape);

// args: the operands, then into if it is there.
Status ConvShape(const ConvAttrs& attrs, const PartialTensorShape& src,
                 const PartialTensorShape& weights, const std::vector<PartialTensorShape>& args,
                 PartialTensorShape* dst);
Status ConvDepthwiseShape(const ConvDepthwiseAttrs& attrs, const PartialTensorShape& src,
                          const PartialTensorShape& weights,
                          const PartialTensorShape& depthwise_weights,
                          const std::vector<PartialTensorShape>& args,
                          const std::vector<PartialTensorShape>& depthwise_args,
                          PartialTensorShape* dst);
Status InnerProductShape(const InnerProductAttrs& attrs, const PartialTensorShape& src,
                         const PartialTensorShape& weights,
                         const std::vector<PartialTensorShape>& args, PartialTensorShape* dst);
// args: the operands, then into if it is there.
Status EltwiseShape(const EltwiseAttrs& attrs, const PartialTensorShape& src,
                    const std::vector<PartialTensorShape>& args, PartialTensorShape* dst);
// inputs: src, then into if it is there.
Status PoolShape(const PoolAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                 PartialTensorShape* dst);
// Of ddst, src and dst; attrs has no parts.
Status CheckPoolGradShapes(const PoolAttrs& attrs, const std::vector<PartialTensorShape>& inputs);
Status GlobalPoolShape(const GlobalPoolAttrs& attrs, const PartialTensorShape& src,
                       PartialTensorShape* dst);
// weights: the four inputs after src.
Status SqueezeExciteShape(const SqueezeExciteAttrs& attrs, const PartialTensorShape& src,
                          const std::vector<PartialTensorShape>& weights, PartialTensorShape* dst);
Status CheckSoftmaxShape(const PartialTensorShape& src);
// inputs: the values, then into if it is there.
Status ConcatShape(const ConcatAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                   PartialTensorShape* dst);

// Input i and inputs [first, end) of a node being built.
PartialTensorShape InputShape(tensorflow::shape_inference::InferenceContext* c, int i);
std::vector<PartialTensorShape> InputShapes(tensorflow::shape_inference::InferenceContext* c,
                                            int first);
// Sets the node's only output. `keeps_batch`: the first dimensions of the first input
// and of the output are the same.
Status SetOutputShape(tensorflow::shape_inference::InferenceContext* c,
                      const PartialTensorShape& dst, bool keeps_batch = true);

// The shape function of an op whose inputs are src, weights and what else `kShape` takes.
template <typename Attrs, auto kShape, bool keeps_batch = true>
Status PackedWeightsOpShape(tensorflow::shape_inference::InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(c));
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(kShape(attrs, InputShape(c, 0), InputShape(c, 1), InputShapes(c, 2), &dst));
  return SetOutputShape(c, dst, keeps_batch);
}

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_SHAPE_FNS_H_
