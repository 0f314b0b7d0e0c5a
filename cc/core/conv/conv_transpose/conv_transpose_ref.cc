// The definition of transposed convolution, for tests: one output element at a time, in double.
#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/core/post_ops/post_ops_ref.h"

namespace bd {
namespace {

double Sum(const ConvTransposeDesc& d, const float* src, const float* weights, int64_t n, int64_t o,
           int64_t y, int64_t x) {
  const int64_t icb = (d.ic + 15) / 16;
  double sum = 0;
  for (int64_t kh = 0; kh < d.kh; ++kh) {
    for (int64_t kw = 0; kw < d.kw; ++kw) {
      const int64_t h = y + d.pad_top - kh, w = x + d.pad_left - kw;
      if (h < 0 || w < 0 || h % d.sh != 0 || w % d.sw != 0) continue;
      const int64_t r = h / d.sh, c = w / d.sw;
      if (r >= d.ih || c >= d.iw) continue;
      for (int64_t i = 0; i < d.ic; ++i) {
        sum += double{src[(((n * icb + i / 16) * d.ih + r) * d.iw + c) * 16 + i % 16]} *
               weights[((kh * d.kw + kw) * d.oc + o) * d.ic + i];
      }
    }
  }
  return sum;
}

}  // namespace

void ConvTransposeRef(const ConvTransposeDesc& d, const float* src, const float* weights,
                      const float* const* args, float* dst) {
  const bool plain = d.dst_layout == Layout::nhwc;
  const int64_t padded = plain ? d.oc : (d.oc + 15) / 16 * 16;
  for (int64_t n = 0; n < d.n; ++n) {
    for (int64_t o = 0; o < padded; ++o) {
      for (int64_t y = 0; y < d.oh; ++y) {
        for (int64_t x = 0; x < d.ow; ++x) {
          const int64_t at =
              plain ? ((n * d.oh + y) * d.ow + x) * d.oc + o
                    : (((n * padded + o / 16 * 16) / 16 * d.oh + y) * d.ow + x) * 16 + o % 16;
          dst[at] =
              o >= d.oc
                  ? 0.f
                  : static_cast<float>(ApplyPostOpsRef(d.post_ops, Sum(d, src, weights, n, o, y, x),
                                                       args, dst, at, o, n * padded + o));
        }
      }
    }
  }
}

}  // namespace bd
