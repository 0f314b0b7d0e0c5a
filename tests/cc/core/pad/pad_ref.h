// The definition of pad, for tests.
#pragma once

#include "cc/core/pad/pad.h"

namespace bd {

// The definition of float32.
inline void PadRef(const PadDesc& d, const float* src, float* dst) {
  for (int64_t i = 0; i < d.planes; ++i) {
    for (int64_t y = 0; y < d.dst_height(); ++y) {
      for (int64_t x = 0; x < d.dst_width(); ++x) {
        const int64_t sy = y - d.top, sx = x - d.left;
        const bool inside = sy >= 0 && sy < d.height && sx >= 0 && sx < d.width;
        for (int64_t c = 0; c < 16; ++c) {
          dst[((i * d.dst_height() + y) * d.dst_width() + x) * 16 + c] =
              inside ? src[((i * d.height + sy) * d.width + sx) * 16 + c] : 0.f;
        }
      }
    }
  }
}

}  // namespace bd
