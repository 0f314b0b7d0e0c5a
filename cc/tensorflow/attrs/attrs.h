// Attributes of the ops, read and checked once, by the shape functions and by
// the kernels alike. `Context` is shape_inference::InferenceContext or
// OpKernelConstruction: both answer GetAttr(name, &value).
#ifndef CC_TENSORFLOW_ATTRS_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_ATTRS_H_

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/layout.h"
#include "cc/layout/window.h"
#include "cc/tensorflow/attrs/channel_part.h"
#include "tensorflow/core/platform/errors.h"

namespace bd {

using absl::Status;

// An InvalidArgument of the joined parts: what is wrong, then the remedy.
template <typename... Parts>
Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// An error unless `list` has `size` integers, none below `least`; `meaning` says what they are.
Status CheckList(const char* name, const std::vector<int64_t>& list, size_t size, int64_t least,
                 const char* meaning);

// Of the ops that run convolutions, one or several with the same algorithm.
constexpr char kAlgorithmAttr[] =
    "algorithm: {'auto', 'direct', 'winograd', 'paired', 'auto_small', 'auto_smallest'} = 'auto'";
// Of every op that takes scratch memory; cc/tensorflow/op_base/scratchpad.h reads it.
constexpr char kScratchpadModeAttr[] = "scratchpad_mode: {'user', 'library'} = 'user'";

// The layout attribute `name`; its allowed values are in the op's definition.
template <typename Context>
Status ReadLayout(Context* c, const char* name, Layout* layout) {
  std::string text;
  TF_RETURN_IF_ERROR(c->GetAttr(name, &text));
  return ParseLayout(text, layout) ? absl::OkStatus()
                                   : Invalid(name, " \"", text, "\" is not a known layout");
}

// The sliding window of a convolution or pooling; sizes and outputs are left to
// the shapes (see ResolveWindows in shape_fns.h).
struct WindowAttrs {
  Padding padding = Padding::kValid;
  Window1d h, w;

  // Reads and checks the attributes that every op with a window has.
  template <typename Context>
  Status Read(Context* c, const std::vector<int64_t>& kernel,
              const std::vector<int64_t>& dilations) {
    std::vector<int64_t> strides, explicit_paddings;
    std::string padding_name;
    TF_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
    TF_RETURN_IF_ERROR(c->GetAttr("padding", &padding_name));
    TF_RETURN_IF_ERROR(c->GetAttr("explicit_paddings", &explicit_paddings));
    return Set(kernel, strides, dilations, padding_name, explicit_paddings);
  }

  // Checks the lists as they come from the op and takes them over.
  Status Set(const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
             const std::vector<int64_t>& dilations, const std::string& padding,
             const std::vector<int64_t>& explicit_paddings);
};

// A post-op chain and how many operands the op has for it.
struct ChainAttrs {
  PostOpChain chain;
  int num_args = 0;

  // The attributes of these names.
  template <typename Context>
  Status Read(Context* c, const char* chain_name = "post_ops", const char* num_name = "num_args") {
    std::string text;
    int args;
    TF_RETURN_IF_ERROR(c->GetAttr(chain_name, &text));
    TF_RETURN_IF_ERROR(c->GetAttr(num_name, &args));
    return Set(text, args);
  }

  // Parses `text` and checks that every #k is one of the num_args operands.
  Status Set(const std::string& text, int num_args);
};

// What ops on packed weights have in common, for one input of weights.
struct PackedWeightsAttrs {
  std::string algorithm;
  std::vector<int64_t> weights_shape;  // each op says of what
  int64_t weights_offset = 0;
  bool constant_weights = false;
  ChainAttrs post_ops;

  int64_t weights_size() const;  // elements

  // All but the chain.
  template <typename Context>
  Status ReadWeights(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("algorithm", &algorithm));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_shape", &weights_shape));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_offset", &weights_offset));
    return c->GetAttr("constant_weights", &constant_weights);
  }
  // `rank` sizes, which `meaning` names.
  Status CheckWeightsShape(size_t rank, const char* meaning) const;
};

// An InvalidArgument about entry i of a chain; `parts` as for Invalid.
template <typename... Parts>
Status InvalidEntry(const PostOpChain& chain, int i, const Parts&... parts) {
  return Invalid("post_ops entry ", i, " \"", ToString(chain.entries()[i]), "\": ", parts...);
}

// weights_shape is [kh, kw, ic / groups, oc].
struct ConvAttrs : PackedWeightsAttrs {
  Layout src_layout = Layout::nhwc, dst_layout = Layout::nhwc;
  int64_t channels = 0, groups = 1;
  ChannelPart src_part;
  std::vector<int64_t> src_blocks;  // of the wider tensor; empty: all of the part
  DstPart dst_part;
  WindowAttrs window;
  int64_t pool_h = 1, pool_w = 1;  // 1x1: none

  int64_t oc() const { return weights_shape[3]; }

  template <typename Context>
  Status Read(Context* c) {
    std::vector<int64_t> pool;
    TF_RETURN_IF_ERROR(ReadConv(c));
    TF_RETURN_IF_ERROR(ReadWeights(c));
    TF_RETURN_IF_ERROR(c->GetAttr("pool", &pool));
    TF_RETURN_IF_ERROR(SetPool(pool));
    TF_RETURN_IF_ERROR(ReadWindow(c));
    TF_RETURN_IF_ERROR(ReadSrc(c));
    TF_RETURN_IF_ERROR(dst_part.Read(c, dst_layout, oc()));
    return post_ops.Read(c);
  }

  // Layouts, channels and groups.
  template <typename Context>
  Status ReadConv(Context* c) {
    TF_RETURN_IF_ERROR(ReadLayout(c, "src_layout", &src_layout));
    TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    return c->GetAttr("groups", &groups);
  }

  // Checks weights_shape, which must be set, too.
  template <typename Context>
  Status ReadWindow(Context* c) {
    std::vector<int64_t> dilations;
    TF_RETURN_IF_ERROR(c->GetAttr("dilations", &dilations));
    TF_RETURN_IF_ERROR(CheckWeights());
    return window.Read(c, {weights_shape[0], weights_shape[1]}, dilations);
  }

  // src_part and src_blocks.
  template <typename Context>
  Status ReadSrc(Context* c) {
    TF_RETURN_IF_ERROR(src_part.Read(c, "src_part", src_layout, channels));
    TF_RETURN_IF_ERROR(c->GetAttr("src_blocks", &src_blocks));
    return CheckSrcBlocks();
  }

  Status CheckWeights() const;

 private:
  Status CheckSrcBlocks() const;
  Status SetPool(const std::vector<int64_t>& pool);
};

// A 1x1 convolution and the depthwise one that reads it; all tensors are nChw16c.
struct ConvDepthwiseAttrs {
  ConvAttrs first, depthwise;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &first.channels));
    TF_RETURN_IF_ERROR(first.ReadWeights(c));
    TF_RETURN_IF_ERROR(c->GetAttr("depthwise_weights_shape", &depthwise.weights_shape));
    TF_RETURN_IF_ERROR(c->GetAttr("depthwise_weights_offset", &depthwise.weights_offset));
    TF_RETURN_IF_ERROR(SetHalves());
    TF_RETURN_IF_ERROR(first.ReadSrc(c));
    TF_RETURN_IF_ERROR(OfDepthwise(depthwise.ReadWindow(c)));
    TF_RETURN_IF_ERROR(first.post_ops.Read(c));
    return OfDepthwise(depthwise.post_ops.Read(c, "depthwise_post_ops", "num_depthwise_args"));
  }

  // The same status; a message says that it is about the depthwise half.
  static Status OfDepthwise(const Status& status);

 private:
  // Sets and checks what follows from the attributes read.
  Status SetHalves();
};

// weights_shape is [ic, oc].
struct InnerProductAttrs : PackedWeightsAttrs {
  int64_t ic() const { return weights_shape[0]; }
  int64_t oc() const { return weights_shape[1]; }

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(ReadWeights(c));
    TF_RETURN_IF_ERROR(CheckWeightsShape(2, "[ic, oc]"));
    return post_ops.Read(c);
  }
};

struct EltwiseAttrs {
  Layout layout = Layout::nhwc;
  int64_t channels = 0;
  ChainAttrs post_ops;
  ChannelPart src_part;
  DstPart dst_part;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(ReadLayout(c, "layout", &layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(src_part.Read(c, "src_part", layout, channels));
    TF_RETURN_IF_ERROR(dst_part.Read(c, layout, channels));
    return post_ops.Read(c);
  }
};

struct PoolAttrs {
  std::string kind;  // max or avg
  int64_t channels = 0;
  WindowAttrs window;
  ChannelPart src_part;
  DstPart dst_part;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(ReadWithoutParts(c));
    TF_RETURN_IF_ERROR(src_part.Read(c, "src_part", Layout::nChw16c, channels));
    return dst_part.Read(c, Layout::nChw16c, channels);
  }

  // Of an op without parts.
  template <typename Context>
  Status ReadWithoutParts(Context* c) {
    std::vector<int64_t> ksize;
    TF_RETURN_IF_ERROR(c->GetAttr("kind", &kind));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("ksize", &ksize));
    TF_RETURN_IF_ERROR(window.Read(c, ksize, {1, 1}));
    return CheckPaddings();
  }

 private:
  Status CheckPaddings() const;
};

struct GlobalPoolAttrs {
  std::string kind;  // max or avg
  Layout dst_layout = Layout::nhwc;
  bool flat_dst = false;  // "nc": [N, C], the same memory as nhwc
  int64_t channels = 0;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("kind", &kind));
    std::string dst;
    TF_RETURN_IF_ERROR(c->GetAttr("dst_layout", &dst));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    flat_dst = dst == "nc";
    return flat_dst ? absl::OkStatus() : ReadLayout(c, "dst_layout", &dst_layout);
  }
};

struct SqueezeExciteAttrs {
  int64_t channels = 0, squeezed = 0;
  // Where reduce_weights, reduce_bias, expand_weights, expand_bias start.
  std::vector<int64_t> offsets;
  PostOpChain reduce_post_ops, expand_post_ops;  // eltwise entries only
  Layout dst_layout = Layout::nhwc;
  bool flat_dst = false;   // "nc": [N, C], the same memory as nhwc
  bool scale_src = false;  // dst is src times its scales

  // Elements of input i + 1.
  int64_t size(int i) const { return i == 1 ? squeezed : i == 3 ? channels : channels * squeezed; }

  template <typename Context>
  Status Read(Context* c) {
    std::string dst, reduce, expand;
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("squeezed", &squeezed));
    TF_RETURN_IF_ERROR(c->GetAttr("offsets", &offsets));
    TF_RETURN_IF_ERROR(c->GetAttr("reduce_post_ops", &reduce));
    TF_RETURN_IF_ERROR(c->GetAttr("expand_post_ops", &expand));
    TF_RETURN_IF_ERROR(c->GetAttr("dst_layout", &dst));
    TF_RETURN_IF_ERROR(c->GetAttr("scale_src", &scale_src));
    flat_dst = dst == "nc";
    if (!flat_dst) TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &dst_layout));
    return Set(reduce, expand);
  }

 private:
  Status Set(const std::string& reduce, const std::string& expand);
};

struct ConcatAttrs {
  std::vector<int64_t> channels;  // one an input
  // Of each input [first channel, channels of the tensor], or empty: all are joined whole.
  std::vector<int64_t> src_parts;
  DstPart dst_part;

  int64_t first(size_t i) const { return src_parts.empty() ? 0 : src_parts[2 * i]; }
  int64_t src_channels(size_t i) const {
    return src_parts.empty() ? channels[i] : src_parts[2 * i + 1];
  }

  int64_t dst_channels() const {
    return std::accumulate(channels.begin(), channels.end(), int64_t{0});
  }

  template <typename Context>
  Status Read(Context* c) {
    int n;
    TF_RETURN_IF_ERROR(c->GetAttr("N", &n));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("src_parts", &src_parts));
    TF_RETURN_IF_ERROR(Check(n));
    return dst_part.Read(c, Layout::nChw16c, dst_channels());
  }

 private:
  Status Check(int n) const;
};

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_ATTRS_H_
