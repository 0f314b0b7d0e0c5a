// Attributes that ops of several families have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/layout.h"
#include "cc/layout/window.h"
#include "cc/tensorflow/attrs/attr_visitor.h"
#include "cc/tensorflow/attrs/channel_part.h"
#include "tensorflow/core/platform/errors.h"

namespace bd {

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
