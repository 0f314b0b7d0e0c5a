// The convolution asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/tensor_view.h"
#include "cc/layout/window.h"

namespace bd {

// Some channels of a wider tensor, whose images lie further apart.
inline bool IsPart(const TensorView& view) { return view.image_stride() != view.image_elements(); }

// kAutoSmall: the fastest whose packed weights take at most twice the plain ones' memory;
// F(4x4, 3x3) takes four times. kAutoSmallest: at most 9/8, which is no Winograd.
// kWinograd, kFip: wherever they apply, else kDirect.
enum class ConvAlgorithm {
  kAuto,
  kDirect,
  kWinograd,
  kFip,
  kAutoSmall,
  kAutoSmallest,
};

// Of float32 all tensors are. Of other types:
//
//   src    weights           multiplied as
//   bf16   bf16, or f32      bfloat16, with sums in float32; floats are rounded
//   u8     s8, [-127, 127]   bytes, which stand for src_quantization and for
//                            ConvBuffers::weight_scales[oc], with exact sums in int32
//
// and dst is f32, bf16 or u8, as is the operand of a sum that follows the bias, if any. All other
// operands, and the bias, are float32; so is all arithmetic after the sums. Padding is zero: of
// bytes the zero point.
struct ConvTypes {
  DataType weights = DataType::f32;
  DataType sum = DataType::f32;  // of the operand of a sum that follows the bias
  Quantization src_quantization, sum_quantization, dst_quantization;
};

// src and dst are nhwc or nChw16c and may be parts of wider nChw16c tensors; operands of the chain
// are tensors of their own, of the shape before pooling. Weights are HWIO [kh, kw, ic / groups,
// oc].
struct ConvDesc {
  TensorView src, dst;
  Windows windows;  // resolved (cc/layout/window.h), along height and width
  int64_t groups = 1;
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  bool keeps_weights = false;    // packed once for many calls, so that packing may take its time
  bool changes_weights = false;  // packed anew for each call, so that the choice counts packing
  bool hands_plain = false;      // with them: ConvBuffers::plain is set, whatever the algorithm
  PostOpChain post_ops;
  ConvTypes types;  // beside those of src and dst
  // Which blocks of the wider tensor src is, ascending; empty: as many as it has channels for,
  // from the first on.
  std::vector<int64_t> src_blocks;
  // dst holds, of the result after the chain, the maxima of pool_h x pool_w pixels that
  // touch; rows and columns that fill no window are left out. 1x1 (all) or 2x2, which Winograd
  // stores where its tiles hold whole windows and the chain is a bias and a clamp at most.
  int64_t pool_h = 1, pool_w = 1;

  // Sizes of src, and of the result before pooling.
  int64_t n() const { return src.n(); }
  int64_t ic() const { return src.c(); }
  int64_t ih() const { return windows.h.size; }
  int64_t iw() const { return windows.w.size; }
  int64_t oc() const { return dst.c(); }
  int64_t oh() const { return windows.h.out; }
  int64_t ow() const { return windows.w.out; }

  int64_t kh() const { return windows.h.kernel; }
  int64_t kw() const { return windows.w.kernel; }
  int64_t sh() const { return windows.h.stride; }
  int64_t sw() const { return windows.w.stride; }
  int64_t dh() const { return windows.h.dilation; }
  int64_t dw() const { return windows.w.dilation; }
  int64_t pad_top() const { return windows.h.pad_before; }
  int64_t pad_left() const { return windows.w.pad_before; }

  // Register tiles of bfloat16 or of bytes, which not all algorithms have.
  bool low_precision() const { return src.dtype() != DataType::f32; }
  bool pooled() const { return pool_h != 1 || pool_w != 1; }
  int64_t dst_h() const { return oh() / pool_h; }
  int64_t dst_w() const { return ow() / pool_w; }
  // The result before pooling, as a tensor of its own.
  TensorView result() const {
    return TensorView(dst.dtype(), dst.layout(), {n(), oc(), oh(), ow()});
  }
  // A 1x1 convolution whose source and destination have the same pixels.
  bool pointwise() const {
    return windows.taps() == 1 && sh() == 1 && sw() == 1 && pad_top() == 0 && pad_left() == 0 &&
           oh() == ih() && ow() == iw();
  }
  bool depthwise() const { return groups == ic() && groups == oc(); }
  // Whether register tiles multiply channels of other groups, by zero: those in the same block,
  // or in the same pixel.
  bool tiles_mix_groups() const {
    return groups > 1 &&
           (!src.blocked() || ic() / groups % src.lanes() != 0 || oc() / groups % src.lanes() != 0);
  }
};

// Returns an empty string, or one line that says that groups do not divide the channels, or that
// what a plan would count or take goes beyond cc/base/size.h.
std::string CheckSizes(const ConvDesc& d);

}  // namespace bd
