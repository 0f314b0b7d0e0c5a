// A tensor as part of the channels of a wider nChw16c one, which an op reads from or
// writes into: the attributes src_part and dst_part, and the input `into`.
#ifndef CC_TENSORFLOW_ATTRS_CHANNEL_PART_H_
#define CC_TENSORFLOW_ATTRS_CHANNEL_PART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/layout/layout.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace bd {

// Channels [first, first + count) of `total`, or a tensor of its own where total is 0. A
// part starts and ends at whole blocks, or ends with the wider tensor, so that the
// part of an image is one piece of memory.
struct ChannelPart {
  int64_t first = 0, count = 0, total = 0;

  // `list` is [first, total], or empty: no part. `name` is the attribute's.
  absl::Status Set(const char* name, const std::vector<int64_t>& list, Layout layout,
                   int64_t count);

  template <typename Context>
  absl::Status Read(Context* c, const char* name, Layout layout, int64_t count) {
    std::vector<int64_t> list;
    if (absl::Status status = c->GetAttr(name, &list); !status.ok()) return status;
    return Set(name, list, layout, count);
  }

  // Of the tensor in memory, which an op calls `own` channels.
  int64_t tensor_channels(int64_t own) const { return total > 0 ? total : own; }
  // Whether the channel tail of the tensor in memory belongs to the op.
  bool has_tail() const { return first + count == total || total == 0; }
  // Floats before the part, in an image of `pixels` pixels.
  int64_t offset(int64_t pixels) const { return first * pixels; }
};

// Where an op writes. With `into` the result starts as what that holds, without it all
// but the part is undefined.
struct DstPart : ChannelPart {
  bool has_into = false;

  // Also reads num_into.
  template <typename Context>
  absl::Status Read(Context* c, Layout layout, int64_t count) {
    int num_into;
    if (absl::Status status = c->GetAttr("num_into", &num_into); !status.ok()) return status;
    if (absl::Status status = SetInto(num_into); !status.ok()) return status;
    return ChannelPart::Read(c, "dst_part", layout, count);
  }

  absl::Status SetInto(int num_into);
  // `inputs` are those of the op, of which the last is `into` if there is one.
  absl::Status CheckInto(const std::vector<tensorflow::PartialTensorShape>& inputs,
                         const tensorflow::PartialTensorShape& dst) const;
};

// In the definitions of the ops that have them.
constexpr char kSrcPartAttr[] = "src_part: list(int) = []";
constexpr char kSrcBlocksAttr[] = "src_blocks: list(int) = []";
constexpr char kDstPartAttr[] = "dst_part: list(int) = []";
constexpr char kIntoInput[] = "into: num_into * T";
constexpr char kIntoAttr[] = "num_into: int >= 0 = 0";

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_CHANNEL_PART_H_
