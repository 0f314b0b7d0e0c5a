#include "cc/tensorflow/attrs/attrs.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace bd {
namespace {

std::string Text(const std::vector<int64_t>& list) {
  std::string joined = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) joined += ", ";
    joined += std::to_string(list[i]);
  }
  return joined + "]";
}

}  // namespace

Status CheckList(const char* name, const std::vector<int64_t>& list, size_t size, int64_t least,
                 const char* meaning) {
  const bool valid = list.size() == size && std::all_of(list.begin(), list.end(), [=](int64_t v) {
                       return v >= least && v <= INT32_MAX;
                     });
  if (valid) return absl::OkStatus();
  return Invalid(name, " must be ", meaning, ", each at least ", least, "; got ", Text(list));
}

Status WindowAttrs::Set(const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
                        const std::vector<int64_t>& dilations, const std::string& padding_name,
                        const std::vector<int64_t>& explicit_paddings) {
  TF_RETURN_IF_ERROR(CheckList("ksize", kernel, 2, 1, "[height, width]"));
  TF_RETURN_IF_ERROR(CheckList("strides", strides, 2, 1, "[height, width]"));
  TF_RETURN_IF_ERROR(CheckList("dilations", dilations, 2, 1, "[height, width]"));
  if (padding_name == "EXPLICIT") {
    TF_RETURN_IF_ERROR(CheckList("explicit_paddings", explicit_paddings, 4, 0,
                                 "[top, bottom, left, right] with padding=\"EXPLICIT\""));
  } else if (!explicit_paddings.empty()) {
    return Invalid("explicit_paddings ", Text(explicit_paddings),
                   " need padding=\"EXPLICIT\", not \"", padding_name, "\"");
  }
  if (!ParsePadding(padding_name, &padding)) {
    return Invalid("padding must be SAME, VALID or EXPLICIT; got \"", padding_name, "\"");
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

Status ChainAttrs::Set(const std::string& text, int args) {
  std::string error;
  if (!PostOpChain::Parse(text, &chain, &error)) {
    return Invalid("post_ops \"", text, "\": ", error);
  }
  num_args = args;
  for (int i = 0; i < chain.len(); ++i) {
    const PostOp& op = chain.entries()[i];
    if (op.kind == PostOpKind::kEltwise) continue;
    if (op.operand.input == OperandRef::kDst) {
      return InvalidEntry(chain, i, "an op gets the previous dst in args; name it, as in sum(#0)");
    }
    if (op.operand.input >= args) {
      return InvalidEntry(chain, i, "there is no operand #", op.operand.input, ", the op has ",
                          args, " args; pass it in args");
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

int64_t PackedWeightsAttrs::weights_size() const {
  return std::accumulate(weights_shape.begin(), weights_shape.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

Status PackedWeightsAttrs::CheckWeightsShape(size_t rank, const char* meaning) const {
  TF_RETURN_IF_ERROR(CheckList("weights_shape", weights_shape, rank, 1, meaning));
  constexpr double kMostElements = 1e12;  // far above any memory, far below overflow
  double size = 1;
  for (int64_t d : weights_shape) size *= static_cast<double>(d);
  if (size <= kMostElements) return absl::OkStatus();
  return Invalid("weights_shape ", Text(weights_shape), " has too many elements");
}

Status ConvAttrs::CheckWeights() const {
  TF_RETURN_IF_ERROR(CheckWeightsShape(4, "[kh, kw, ic / groups, oc]"));
  if (channels % groups != 0 || oc() % groups != 0) {
    return Invalid("groups = ", groups, " must divide both the ", channels,
                   " input channels and the ", oc(), " output channels");
  }
  if (weights_shape[2] != channels / groups) {
    return Invalid("weights_shape ", Text(weights_shape),
                   " must have channels / groups = ", channels, " / ", groups, " = ",
                   channels / groups, " as its third dimension");
  }
  return absl::OkStatus();
}

Status ConvDepthwiseAttrs::OfDepthwise(const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), absl::StrCat("depthwise: ", status.message()));
}

Status ConvDepthwiseAttrs::SetHalves() {
  for (ConvAttrs* half : {&first, &depthwise}) {
    half->src_layout = half->dst_layout = Layout::nChw16c;
    half->algorithm = first.algorithm;
    half->constant_weights = first.constant_weights;
  }
  TF_RETURN_IF_ERROR(first.CheckWeights());
  if (first.weights_shape[0] != 1 || first.weights_shape[1] != 1) {
    return Invalid(
        "weights_shape ", Text(first.weights_shape),
        " must be [1, 1, channels, output channels]; use BlockdnnConv for other windows");
  }
  TF_RETURN_IF_ERROR(first.window.Set({1, 1}, {1, 1}, {1, 1}, "VALID", {}));
  depthwise.channels = depthwise.groups = first.oc();
  const std::vector<int64_t>& shape = depthwise.weights_shape;
  if (shape.size() == 4 && shape[2] == 1 && shape[3] == first.oc()) return absl::OkStatus();
  return Invalid("depthwise_weights_shape ", Text(shape), " must be [kh, kw, 1, ", first.oc(),
                 "]: one filter for each output channel of weights");
}

Status ConvAttrs::CheckSrcBlocks() const {
  if (src_blocks.empty()) return absl::OkStatus();
  constexpr int64_t kBlockChannels = 16;
  const int64_t count = static_cast<int64_t>(src_blocks.size()), wide = src_part.total;
  int64_t least = 0;
  for (int64_t block : src_blocks) {
    if (block < least || block >= wide / kBlockChannels) {
      return Invalid("src_blocks ", Text(src_blocks), " must ascend from 0 on and below ",
                     wide / kBlockChannels, ", the blocks of src_part = [0, ", wide, "]");
    }
    least = block + 1;
  }
  if (src_part.first == 0 && wide % kBlockChannels == 0 && channels == count * kBlockChannels) {
    return absl::OkStatus();
  }
  return Invalid("src_blocks are ", count,
                 " blocks of 16 channels of src_part = [0, a multiple of ", "16]; got src_part = [",
                 src_part.first, ", ", wide, "] and channels = ", channels);
}

Status ConvAttrs::SetPool(const std::vector<int64_t>& pool) {
  if (pool.empty()) return absl::OkStatus();
  if (pool != std::vector<int64_t>{2, 2}) {
    return Invalid("pool must be [2, 2] or nothing; got ", Text(pool),
                   ": use an op of its own for other windows");
  }
  if (dst_layout != Layout::nChw16c) {
    return Invalid("pool needs dst_layout nChw16c; reorder its result");
  }
  pool_h = pool[0];
  pool_w = pool[1];
  return absl::OkStatus();
}

Status PoolAttrs::CheckPaddings() const {
  for (const Window1d& w : {window.h, window.w}) {
    if (std::max(w.pad_before, w.pad_after) < w.kernel) continue;
    return Invalid("explicit_paddings ", w.pad_before, " and ", w.pad_after,
                   " must be smaller than ksize ", w.kernel,
                   ": a window would see nothing but padding");
  }
  return absl::OkStatus();
}

Status SqueezeExciteAttrs::Set(const std::string& reduce, const std::string& expand) {
  TF_RETURN_IF_ERROR(CheckList("offsets", offsets, 4, 0, "those of two weights and two biases"));
  constexpr int64_t kMostElements = int64_t{1} << 40;  // far above any memory
  if (channels < 1 || squeezed < 1) {
    return Invalid("channels and squeezed must be at least 1: ", channels, " and ", squeezed);
  }
  if (channels > kMostElements / squeezed) {
    return Invalid(channels, " channels times ", squeezed, " squeezed ones are too many");
  }
  if (scale_src && dst_layout != Layout::nChw16c) {
    return Invalid("scale_src makes dst as src: dst_layout must be nChw16c, not ",
                   flat_dst ? "nc" : "nhwc");
  }
  const struct {
    const char* name;
    const std::string& text;
    PostOpChain* chain;
  } chains[] = {{"reduce_post_ops", reduce, &reduce_post_ops},
                {"expand_post_ops", expand, &expand_post_ops}};
  for (const auto& chain : chains) {
    std::string error;
    if (!PostOpChain::Parse(chain.text, chain.chain, &error)) {
      return Invalid(chain.name, " \"", chain.text, "\": ", error);
    }
    for (const PostOp& op : chain.chain->entries()) {
      if (op.kind == PostOpKind::kEltwise) continue;
      return Invalid(chain.name, " entry \"", ToString(op),
                     "\": only eltwise entries are possible");
    }
  }
  return absl::OkStatus();
}

Status ConcatAttrs::Check(int n) const {
  if (channels.size() != static_cast<size_t>(n) ||
      !std::all_of(channels.begin(), channels.end(),
                   [](int64_t c) { return c >= 1 && c <= INT32_MAX; })) {
    return Invalid("channels must list the channels, from 1 to 2^31 - 1, of each of the ", n,
                   " values; got ", Text(channels));
  }
  if (src_parts.empty()) return absl::OkStatus();
  if (src_parts.size() != 2 * channels.size()) {
    return Invalid("src_parts must list [first channel, channels of the tensor] of each of the ", n,
                   " values; got ", Text(src_parts));
  }
  for (size_t i = 0; i < channels.size(); ++i) {
    const int64_t first = src_parts[2 * i], total = src_parts[2 * i + 1];
    if (total > INT32_MAX || total < channels[i] || first < 0 || first > total - channels[i]) {
      return Invalid("src_parts [", first, ", ", total, "] of ", channels[i],
                     " channels reaches beyond the whole tensor");
    }
  }
  return absl::OkStatus();
}

}  // namespace bd
