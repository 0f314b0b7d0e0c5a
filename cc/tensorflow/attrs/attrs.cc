#include "cc/tensorflow/attrs/attrs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"

namespace bd {

std::string Text(const std::vector<int64_t>& list) {
  std::string joined = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) joined += ", ";
    joined += std::to_string(list[i]);
  }
  return joined + "]";
}

Status CheckList(const char* name, const std::vector<int64_t>& list, size_t size, int64_t least,
                 const char* meaning) {
  const bool valid = list.size() == size && std::all_of(list.begin(), list.end(), [=](int64_t v) {
                       return v >= least && v <= INT32_MAX;
                     });
  if (valid) return absl::OkStatus();
  return Invalid(name, " must be ", meaning, ", each at least ", least, "; got ", Text(list));
}

Status ReadQuantization(const std::string& name, DataType dtype, absl::Span<const float> list,
                        Quantization* value) {
  *value = {};
  if (dtype != DataType::u8) {
    if (list.empty()) return absl::OkStatus();
    return Invalid(name, "_quantization is for uint8; ", name, " is ", DataTypeName(dtype),
                   ", so leave it out");
  }
  const auto valid = [&] {
    const float scale = list[0], zero_point = list[1];
    return scale > 0 && std::isnormal(scale) && std::isfinite(1 / scale) &&
           (IsZero(zero_point) || zero_point >= 1) && zero_point <= 255 &&
           zero_point == std::floor(zero_point);
  };
  if (list.size() != 2 || !valid()) {
    return Invalid(name, "_quantization of a uint8 tensor must be [scale, zero_point], a positive ",
                   "finite number and an integer of 0 to 255; got [", absl::StrJoin(list, ", "),
                   "]");
  }
  *value = {list[0], static_cast<int32_t>(list[1])};
  return absl::OkStatus();
}

Status QuantizationAttr::Check(const char* name, DataType dtype) {
  return ReadQuantization(name, dtype, list, &value);
}

Status TypesAttrs::Check() {
  TF_RETURN_IF_ERROR(src_quantization.Check("src", src));
  return dst_quantization.Check("dst", dst);
}

Status TypesAttrs::CheckSame(const char* op) {
  if (src != dst) {
    return Invalid(op, " keeps the type ", DataTypeName(src), ", so dst_type cannot be ",
                   DataTypeName(dst), "; add a reorder");
  }
  TF_RETURN_IF_ERROR(Check());
  if (src_quantization.value == dst_quantization.value) return absl::OkStatus();
  return Invalid(op, " keeps elements as they are, so dst_quantization must be src_quantization;",
                 " add a reorder");
}

Status WindowAttrs::Check() {
  TF_RETURN_IF_ERROR(CheckList("ksize", kernel, 2, 1, "[height, width]"));
  TF_RETURN_IF_ERROR(CheckList("strides", strides, 2, 1, "[height, width]"));
  TF_RETURN_IF_ERROR(CheckList("dilations", dilations, 2, 1, "[height, width]"));
  if (padding == Padding::kExplicit) {
    TF_RETURN_IF_ERROR(CheckList("explicit_paddings", explicit_paddings, 4, 0,
                                 "[top, bottom, left, right] with padding=\"EXPLICIT\""));
  } else if (!explicit_paddings.empty()) {
    return Invalid("explicit_paddings ", Text(explicit_paddings),
                   " need padding=\"EXPLICIT\", not \"",
                   padding == Padding::kSame ? "SAME" : "VALID", "\"");
  }
  for (int axis = 0; axis < 2; ++axis) {
    Window1d& window = axis == 0 ? h : w;
    window.kernel = kernel[axis];
    window.stride = strides[axis];
    window.dilation = dilations[axis];
    if (padding != Padding::kExplicit) continue;
    window.pad_before = explicit_paddings[2 * axis];
    window.pad_after = explicit_paddings[2 * axis + 1];
  }
  return absl::OkStatus();
}

Status CheckScaleCount(DataType weights, int num_scales) {
  const bool int4 = weights == DataType::u8;
  const int wanted = weights == DataType::s8 || int4 ? 1 : 0;
  if (num_scales == wanted) return absl::OkStatus();
  if (wanted == 0) {
    return Invalid("weights of ", DataTypeName(weights), " have no weight_scales; got ",
                   num_scales);
  }
  return Invalid("weights of ", DataTypeName(weights), " need weight_scales, one tensor of ",
                 int4 ? "the steps and offsets of their groups" : "a scale an output channel",
                 "; got ", num_scales);
}

Status CheckSumCount(DataType sum, int num_sums) {
  if (num_sums > 1) return Invalid("sum must be one tensor or none; got ", num_sums);
  if (num_sums == 1 || sum == DataType::f32) return absl::OkStatus();
  return Invalid("sum_type ", DataTypeName(sum), " needs the input sum");
}

Status CheckScales(const tensorflow::PartialTensorShape& scales, int64_t offset, int64_t channels) {
  if (!scales.IsFullyDefined() || scales.num_elements() >= offset + channels) {
    return absl::OkStatus();
  }
  return Invalid("weight_scales must hold a scale for each of ", channels, " output channels",
                 offset == 0 ? "" : absl::StrCat(", from element ", offset, " on"), "; got ",
                 scales.DebugString());
}

Status ChainAttrs::Check() {
  std::string error;
  if (!PostOpChain::Parse(text, &chain, &error)) {
    return Invalid("post_ops \"", text, "\": ", error);
  }
  for (int i = 0; i < chain.len(); ++i) {
    const PostOp& op = chain.entries()[i];
    if (op.kind == PostOpKind::kEltwise) continue;
    if (op.operand.input == OperandRef::kDst) {
      return InvalidEntry(chain, i, "an op gets the previous dst in args; name it, as in sum(#0)");
    }
    if (op.operand.input >= num_args) {
      return InvalidEntry(chain, i, "there is no operand #", op.operand.input, ", the op has ",
                          num_args, " args; pass it in args");
    }
    const bool whole = op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor ||
                       op.shape == OperandShape::kSampleChannel;
    if (op.operand.offset < 0 || (whole && op.operand.offset != 0)) {
      return InvalidEntry(chain, i,
                          "only scalar and channel operands take an offset, of 0 or more");
    }
  }
  return absl::OkStatus();
}

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
