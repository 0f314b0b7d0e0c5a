#include "cc/tensorflow/attrs/channel_part.h"

namespace bd {

Status ChannelPart::Check(const char* name, Layout layout, int64_t channels) {
  if (list.empty()) return absl::OkStatus();
  if (list.size() != 2) {
    return Invalid(name, " must be [first channel, channels of the whole tensor]; it has ",
                   list.size(), " elements");
  }
  count = channels;
  first = list[0];
  total = list[1];
  const auto invalid = [&](const char* why) {
    return Invalid(name, " [", first, ", ", total, "] of ", count, " channels ", why);
  };
  if (layout != Layout::nChw16c) return invalid("needs layout nChw16c; add a reorder");
  if (total > INT32_MAX || total < count || first < 0 || first > total - count) {
    return invalid("reaches beyond the whole tensor");
  }
  if (first % 16 != 0 || (count % 16 != 0 && !has_tail())) {
    return invalid("must start and end at multiples of 16 channels, or end with the tensor");
  }
  return absl::OkStatus();
}

Status DstPart::Check(Layout layout, int64_t channels) {
  if (num_into > 1) return Invalid("there is at most one into; got ", num_into);
  return ChannelPart::Check("dst_part", layout, channels);
}

Status DstPart::CheckIntoType(DataType dst_type) const {
  if (!has_into() || into_type == dst_type) return absl::OkStatus();
  return Invalid("into must have the type of the result, ", DataTypeName(dst_type), "; got ",
                 DataTypeName(into_type));
}

Status DstPart::CheckInto(const std::vector<tensorflow::PartialTensorShape>& inputs,
                          const tensorflow::PartialTensorShape& dst) const {
  if (!has_into() || inputs.back().IsCompatibleWith(dst)) return absl::OkStatus();
  return Invalid("into must have the shape of the result, ", dst.DebugString(), "; got ",
                 inputs.back().DebugString());
}

}  // namespace bd
