// The definition of convolution, for tests: one output element at a time,
// accumulated in double, then the post-op chain, then pooling.
#include <algorithm>
#include <limits>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/core/post_ops/post_ops_ref.h"

namespace bd {
namespace {

struct Tensor {
  Layout layout;
  int64_t c, h, w;

  int64_t padded_c() const { return layout == Layout::nhwc ? c : (c + 15) / 16 * 16; }
  int64_t At(int64_t n, int64_t ch, int64_t y, int64_t x) const {
    if (layout == Layout::nhwc) return ((n * h + y) * w + x) * c + ch;
    return (((n * padded_c() + ch / 16 * 16) / 16 * h + y) * w + x) * 16 + ch % 16;
  }
};

double Sum(const ConvDesc& d, const Tensor& s, const float* src, const float* hwio, int64_t n,
           int64_t o, int64_t oh, int64_t ow) {
  const int64_t ic_group = d.ic / d.groups, group = o / (d.oc / d.groups);
  double sum = 0;
  for (int64_t kh = 0; kh < d.kh; ++kh) {
    for (int64_t kw = 0; kw < d.kw; ++kw) {
      const int64_t y = oh * d.sh + kh * d.dh - d.pad_top, x = ow * d.sw + kw * d.dw - d.pad_left;
      if (y < 0 || y >= d.ih || x < 0 || x >= d.iw) continue;
      for (int64_t i = 0; i < ic_group; ++i) {
        const int64_t c = group * ic_group + i;
        sum += double{src[s.At(n, c, y, x)]} * hwio[((kh * d.kw + kw) * ic_group + i) * d.oc + o];
      }
    }
  }
  return sum;
}

void PooledRef(const ConvDesc& d, const float* src, const float* hwio, const float* const* args,
               float* dst) {
  ConvDesc whole = d;
  whole.pool_h = whole.pool_w = 1;
  const Tensor s{d.dst_layout, d.oc, d.oh, d.ow}, t{d.dst_layout, d.oc, d.dst_h(), d.dst_w()};
  std::vector<float> result(d.n * s.padded_c() * d.oh * d.ow);
  ConvRef(whole, src, hwio, args, result.data());
  for (int64_t n = 0; n < d.n; ++n) {
    for (int64_t o = 0; o < t.padded_c(); ++o) {
      for (int64_t y = 0; y < t.h; ++y) {
        for (int64_t x = 0; x < t.w; ++x) {
          float max = -std::numeric_limits<float>::infinity();
          for (int64_t i = 0; i < d.pool_h * d.pool_w; ++i) {
            const int64_t row = y * d.pool_h + i / d.pool_w, column = x * d.pool_w + i % d.pool_w;
            max = std::max(max, result[s.At(n, o, row, column)]);
          }
          dst[t.At(n, o, y, x)] = max;
        }
      }
    }
  }
}

}  // namespace

void ConvRef(const ConvDesc& d, const float* src, const float* hwio, const float* const* args,
             float* dst) {
  if (d.pooled()) return PooledRef(d, src, hwio, args, dst);
  const Tensor s{d.src_layout, d.ic, d.ih, d.iw}, t{d.dst_layout, d.oc, d.oh, d.ow};
  for (int64_t n = 0; n < d.n; ++n) {
    for (int64_t o = 0; o < t.padded_c(); ++o) {
      for (int64_t y = 0; y < d.oh; ++y) {
        for (int64_t x = 0; x < d.ow; ++x) {
          const int64_t at = t.At(n, o, y, x);
          dst[at] =
              o >= d.oc
                  ? 0.f
                  : static_cast<float>(ApplyPostOpsRef(d.post_ops, Sum(d, s, src, hwio, n, o, y, x),
                                                       args, dst, at, o, n * t.padded_c() + o));
        }
      }
    }
  }
}

}  // namespace bd
