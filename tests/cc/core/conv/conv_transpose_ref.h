// The definition of transposed convolution, for tests: one output element at a time, in double.
#ifndef TESTS_CC_CORE_CONV_CONV_TRANSPOSE_REF_H_
#define TESTS_CC_CORE_CONV_CONV_TRANSPOSE_REF_H_

#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/layout/tensor_view_element.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

double Sum(const ConvTransposeDesc& d, const float* src, const float* weights, int64_t n, int64_t o,
           int64_t y, int64_t x) {
  double sum = 0;
  for (int64_t kh = 0; kh < d.kh; ++kh) {
    for (int64_t kw = 0; kw < d.kw; ++kw) {
      const int64_t h = y + d.pad_top - kh, w = x + d.pad_left - kw;
      if (h < 0 || w < 0 || h % d.sh != 0 || w % d.sw != 0) continue;
      const int64_t r = h / d.sh, c = w / d.sw;
      if (r >= d.ih() || c >= d.iw()) continue;
      for (int64_t i = 0; i < d.ic(); ++i) {
        sum += double{src[ElementOf(d.src, n, i, r * d.iw() + c)]} *
               weights[((kh * d.kw + kw) * d.oc() + o) * d.ic() + i];
      }
    }
  }
  return sum;
}

}  // namespace

// The definition in double, chain included, tails zero.
inline void ConvTransposeRef(const ConvTransposeDesc& d, const float* src, const float* weights,
                             const float* const* args, float* dst) {
  const int64_t padded = d.dst.blocks() * d.dst.lanes();
  for (int64_t n = 0; n < d.n(); ++n) {
    for (int64_t o = 0; o < padded; ++o) {
      for (int64_t y = 0; y < d.oh(); ++y) {
        for (int64_t x = 0; x < d.ow(); ++x) {
          const int64_t at = ElementOf(d.dst, n, o, y * d.ow() + x);
          dst[at] =
              o >= d.oc()
                  ? 0.f
                  : static_cast<float>(ApplyPostOpsRef(d.post_ops, Sum(d, src, weights, n, o, y, x),
                                                       args, dst, at, o, n * padded + o));
        }
      }
    }
  }
}

}  // namespace bd

#endif  // TESTS_CC_CORE_CONV_CONV_TRANSPOSE_REF_H_
