// The definition of concat, for tests.
#pragma once

#include "cc/core/concat/concat.h"
#include "cc/layout/tensor_view.h"

namespace bd {

// The same result of float32, element by element.
inline void ConcatRef(const ConcatDesc& desc, const float* const* srcs, float* dst) {
  for (int64_t n = 0; n < desc.dst.n(); ++n) {
    for (int64_t p = 0; p < desc.dst.pixels(); ++p) {
      int64_t to = 0;
      for (size_t i = 0; i < desc.srcs.size(); ++i) {
        const ChannelRange range = desc.range(i);
        for (int64_t c = range.first; c < range.first + range.count; ++c, ++to) {
          dst[desc.dst.element(n, to, p)] = srcs[i][desc.srcs[i].element(n, c, p)];
        }
      }
      for (; to % 16 != 0; ++to) dst[desc.dst.element(n, to, p)] = 0.f;
    }
  }
}

}  // namespace bd
