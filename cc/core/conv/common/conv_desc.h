// The convolution asked for.
#ifndef CC_CORE_CONV_COMMON_CONV_DESC_H_
#define CC_CORE_CONV_COMMON_CONV_DESC_H_

#include <cstdint>
#include <vector>

#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/layout.h"

namespace bd {

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

// Padding is resolved (cc/layout/window.h); weights are HWIO [kh, kw, ic / groups, oc]. src is
// [n, ih, iw, ic] or nChw16c of the same logical shape, dst likewise with [n, dst_h(), dst_w(),
// oc]. Operands of the chain that are tensors have the shape before pooling.
struct ConvDesc {
  int64_t n = 1, ic = 1, ih = 1, iw = 1;
  int64_t oc = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t groups = 1;
  Layout src_layout = Layout::nChw16c;
  Layout dst_layout = Layout::nChw16c;
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  bool keeps_weights = false;    // packed once for many calls, so that packing may take its time
  bool changes_weights = false;  // packed anew for each call, so that the choice counts packing
  bool hands_plain = false;      // with them: ConvBuffers::plain is set, whatever the algorithm
  PostOpChain post_ops;
  // Of a tensor that is part of a wider nChw16c one: the channel blocks of an image of the
  // latter. 0: it is a tensor of its own. Operands of post-ops always are.
  int64_t src_image_blocks = 0, dst_image_blocks = 0;
  // Which blocks of the wider tensor src is, ascending; empty: as many as it has channels for,
  // from the first on.
  std::vector<int64_t> src_blocks;
  // dst holds, of the result behind the chain, the maxima of pool_h x pool_w pixels that
  // touch; rows and columns that fill no window are left out. 1x1 (all) or 2x2, which Winograd
  // stores where its tiles hold whole windows and the chain is a bias and a clamp at most.
  int64_t pool_h = 1, pool_w = 1;

  bool pooled() const { return pool_h != 1 || pool_w != 1; }
  int64_t dst_h() const { return oh / pool_h; }
  int64_t dst_w() const { return ow / pool_w; }
  // A 1x1 convolution whose source and destination have the same pixels.
  bool pointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && pad_top == 0 && pad_left == 0 && oh == ih &&
           ow == iw;
  }
  bool depthwise() const { return groups == ic && groups == oc; }
};

}  // namespace bd

#endif  // CC_CORE_CONV_COMMON_CONV_DESC_H_
