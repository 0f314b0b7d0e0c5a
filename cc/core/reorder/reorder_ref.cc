#include "cc/core/reorder/reorder.h"

namespace bd {

void ReorderRef(const TensorDesc& src_desc, const float* src, const TensorDesc& dst_desc,
                float* dst) {
  const Dims& dims = src_desc.dims();
  const int64_t N = dims[kN], C = dims[kC], H = dims[kH], W = dims[kW];
  const int64_t padded_channels = dst_desc.padded_dims()[kC];
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t c = 0; c < padded_channels; ++c) {
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t w = 0; w < W; ++w) {
          dst[dst_desc.offset(n, c, h, w)] = c < C ? src[src_desc.offset(n, c, h, w)] : 0.0f;
        }
      }
    }
  }
}

}  // namespace bd
