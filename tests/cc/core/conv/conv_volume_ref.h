// The definition of 3-D convolution, for tests: one output element at a time, in double.
#ifndef TESTS_CC_CORE_CONV_CONV_VOLUME_REF_H_
#define TESTS_CC_CORE_CONV_CONV_VOLUME_REF_H_

#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/layout/tensor_view_element.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

double Sum(const ConvVolumeDesc& d, const float* src, const float* weights, int64_t v, int64_t z,
           int64_t y, int64_t x, int64_t o) {
  const ConvDesc& s = d.slice;
  double sum = 0;
  for (int64_t k = 0; k < d.kd; ++k) {
    const int64_t slice = z * d.sd + k - d.pad_front;
    if (slice < 0 || slice >= d.depth) continue;
    for (int64_t kh = 0; kh < s.kh(); ++kh) {
      for (int64_t kw = 0; kw < s.kw(); ++kw) {
        const int64_t r = y * s.sh() + kh * s.dh() - s.pad_top(),
                      c = x * s.sw() + kw * s.dw() - s.pad_left();
        if (r < 0 || r >= s.ih() || c < 0 || c >= s.iw()) continue;
        for (int64_t i = 0; i < s.ic(); ++i) {
          sum += double{src[ElementOf(s.src, v * d.depth + slice, i, r * s.iw() + c)]} *
                 weights[(((k * s.kh() + kh) * s.kw() + kw) * s.ic() + i) * s.oc() + o];
        }
      }
    }
  }
  return sum;
}

}  // namespace

// The definition in double, chain included, tails zero.
inline void ConvVolumeRef(const ConvVolumeDesc& d, const float* src, const float* weights,
                          const float* const* args, float* dst) {
  const ConvDesc& s = d.slice;
  const int64_t channels = s.dst.blocks() * s.dst.lanes();
  for (int64_t image = 0; image < d.volumes * d.out_depth; ++image) {
    for (int64_t o = 0; o < channels; ++o) {
      for (int64_t p = 0; p < s.oh() * s.ow(); ++p) {
        const int64_t at = ElementOf(s.dst, image, o, p);
        dst[at] = o >= s.oc() ? 0.f
                              : static_cast<float>(ApplyPostOpsRef(
                                    s.post_ops,
                                    Sum(d, src, weights, image / d.out_depth, image % d.out_depth,
                                        p / s.ow(), p % s.ow(), o),
                                    args, dst, at, o, image * channels + o));
      }
    }
  }
}

}  // namespace bd

#endif  // TESTS_CC_CORE_CONV_CONV_VOLUME_REF_H_
