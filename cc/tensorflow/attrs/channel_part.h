// A tensor as part of the channels of a wider nChw16c one, which an op reads from or
// writes into: the attributes src_part and dst_part, and the input `into`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/layout/layout.h"
#include "cc/layout/tensor_view.h"
#include "cc/tensorflow/attrs/attr_visitor.h"
#include "tensorflow/core/framework/tensor_shape.h"

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

}  // namespace bd
