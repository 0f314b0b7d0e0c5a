#include "cc/core/concat/concat.h"

namespace bd {

void ConcatRef(const ConcatDesc& desc, const float* const* srcs, float* dst) {
  // nChw16c with the spatial axes seen as one.
  const auto offset = [&](int64_t channels, int64_t n, int64_t c, int64_t p) {
    return ((n * ((channels + 15) / 16) + c / 16) * desc.pixels + p) * 16 + c % 16;
  };
  int64_t dst_channels = 0;
  for (int64_t c : desc.channels) dst_channels += c;
  for (int64_t n = 0; n < desc.n; ++n) {
    for (int64_t p = 0; p < desc.pixels; ++p) {
      int64_t at = 0;
      for (size_t i = 0; i < desc.channels.size(); ++i) {
        for (int64_t c = 0; c < desc.channels[i]; ++c, ++at) {
          dst[offset(dst_channels, n, at, p)] = srcs[i][offset(desc.channels[i], n, c, p)];
        }
      }
      for (; at % 16 != 0; ++at) dst[offset(dst_channels, n, at, p)] = 0.f;
    }
  }
}

}  // namespace bd
