// Attributes that ops of several families have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/layout.h"
#include "cc/layout/tensor_view.h"
#include "cc/layout/window.h"
#include "cc/tensorflow/attrs/attr_visitor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/errors.h"

namespace bd {

// Channels [first, first + count) of `total`, or a tensor of its own where total is 0. A
// part starts and ends at whole blocks, or ends with the wider tensor, so that the
// part of an image is one piece of memory.
struct ChannelPart {
  int64_t first = 0, count = 0, total = 0;
  std::vector<int64_t> list;  // the attribute: [first, total], or nothing: no part

  void Visit(const char* name, AttrVisitor& v) { v(absl::StrCat(name, ": list(int) = []"), &list); }
  // Sets the part of `channels` channels. `name` is the attribute's.
  Status Check(const char* name, Layout layout, int64_t channels);

  // Of the tensor in memory, which an op calls `own` channels.
  int64_t tensor_channels(int64_t own) const { return total > 0 ? total : own; }
  // Whether the channel tail of the tensor in memory belongs to the op.
  bool has_tail() const { return first + count == total || total == 0; }
  // Bytes before the part, which `view` is.
  int64_t offset(const TensorView& view) const {
    return first * view.pixels() * SizeOf(view.dtype());
  }
};

// Where an op writes. With `into`, its last input, the result starts as what that holds, without
// it all but the part is undefined.
struct DstPart : ChannelPart {
  int num_into = 0;                    // the attribute
  DataType into_type = DataType::f32;  // of the ops that write several types

  bool has_into() const { return num_into > 0; }
  void Visit(AttrVisitor& v) {
    ChannelPart::Visit("dst_part", v);
    v("num_into: int >= 0 = 0", &num_into);
  }
  void VisitIntoType(AttrVisitor& v) {
    v("into_type: {float, bfloat16, uint8} = DT_FLOAT", &into_type);
  }
  Status CheckIntoType(DataType dst_type) const;
  Status Check(Layout layout, int64_t channels);
  // `inputs` end with those of the op.
  Status CheckInto(const std::vector<tensorflow::PartialTensorShape>& inputs,
                   const tensorflow::PartialTensorShape& dst) const;
};
constexpr char kIntoInput[] = "into: num_into * T";
// Of an op whose result has a type of its own: it is no type of `into`, or TensorFlow's generated
// function would take it from there, though there are none.
constexpr char kTypedIntoInput[] = "into: num_into * into_type";

// "[1, 2]"
std::string Text(const std::vector<int64_t>& list);

// An error unless `list` has `size` integers, none below `least`; `meaning` says what they are.
Status CheckList(const char* name, const std::vector<int64_t>& list, size_t size, int64_t least,
                 const char* meaning);

// What the numbers of an integer tensor stand for: the attribute is [scale, zero_point], or nothing
// of a tensor that is not of uint8.
struct QuantizationAttr {
  Quantization value;
  std::vector<float> list;  // the attribute

  // `name` is "src", of the attribute src_quantization.
  void Visit(const char* name, AttrVisitor& v) {
    v(absl::StrCat(name, "_quantization: list(float) = []"), &list);
  }
  // Against the type of that tensor; sets the value.
  Status Check(const char* name, DataType dtype);
};

// Whether it is 0 or -0, by the bits: threads that take subnormal numbers for zero must decide as
// the others do.
inline bool IsZero(float x) { return absl::bit_cast<uint32_t>(x) << 1 == 0; }

// Of one tensor of such an attribute's list.
Status ReadQuantization(const std::string& name, DataType dtype, absl::Span<const float> list,
                        Quantization* value);

// The types of an op that reads one activation and writes one.
struct TypesAttrs {
  DataType src = DataType::f32, dst = DataType::f32;  // the attributes T and dst_type
  QuantizationAttr src_quantization, dst_quantization;

  void Visit(AttrVisitor& v) {
    v("T: {float, bfloat16, uint8} = DT_FLOAT", &src);
    v("dst_type: {float, bfloat16, uint8} = DT_FLOAT", &dst);
    src_quantization.Visit("src", v);
    dst_quantization.Visit("dst", v);
  }
  Status Check();
  const Quantization& of_src() const { return src_quantization.value; }
  const Quantization& of_dst() const { return dst_quantization.value; }
  // Of an op that copies elements as they are: both sides must agree. `op` is what it is called.
  Status CheckSame(const char* op);
};

// The sliding window of a convolution or pooling; sizes and outputs are left to
// the shapes (see ResolveWindows in shape_fns.h).
struct WindowAttrs {
  Padding padding = Padding::kValid;
  Window1d h, w;
  // The attributes; kernel and dilations come from others where there are none.
  std::vector<int64_t> kernel, strides, dilations = {1, 1}, explicit_paddings;

  void Visit(AttrVisitor& v, bool has_dilations) {
    v("strides: list(int) = [1, 1]", &strides);
    if (has_dilations) v("dilations: list(int) = [1, 1]", &dilations);
    v.Choice(
        "padding", &padding,
        {{"SAME", Padding::kSame}, {"VALID", Padding::kValid}, {"EXPLICIT", Padding::kExplicit}});
    v("explicit_paddings: list(int) = []", &explicit_paddings);
  }
  // With the kernel set.
  Status Check();
};

// Weights of int8 have one tensor of scales, a float an output channel; others have none.
Status CheckScaleCount(DataType weights, int num_scales);
// There is one input `sum`, or none, which has no type then.
Status CheckSumCount(DataType sum, int num_sums);
Status CheckScales(const tensorflow::PartialTensorShape& scales, int64_t offset, int64_t channels);

// A post-op chain and how many operands the op has for it.
struct ChainAttrs {
  PostOpChain chain;
  // The attributes.
  int num_args = 0;
  std::string text;

  // Parses the text and checks that every #k is one of the num_args operands.
  Status Check();
};

// An InvalidArgument about entry i of a chain; `parts` as for Invalid.
template <typename... Parts>
Status InvalidEntry(const PostOpChain& chain, int i, const Parts&... parts) {
  return Invalid("post_ops entry ", i, " \"", ToString(chain.entries()[i]), "\": ", parts...);
}

}  // namespace bd
