// The definition of shuffle, for tests.
#pragma once

#include <cstring>

#include "cc/core/shuffle/shuffle.h"

namespace bd {

// The same, element by element.
inline void ShuffleRef(const ShuffleDesc& d, const void* src, void* dst) {
  const auto offset = [&](int64_t o, int64_t c, int64_t i) {
    return (((o * d.num_blocks() + c / d.block) * d.inner + i) * d.block + c % d.block) *
           d.element_bytes;
  };
  memset(dst, d.tail, d.size_bytes());
  for (int64_t o = 0; o < d.outer; ++o) {
    for (int64_t u = 0; u < d.channels / d.group; ++u) {
      for (int64_t v = 0; v < d.group; ++v) {
        for (int64_t i = 0; i < d.inner; ++i) {
          memcpy(static_cast<char*>(dst) + offset(o, u + v * (d.channels / d.group), i),
                 static_cast<const char*>(src) + offset(o, u * d.group + v, i), d.element_bytes);
        }
      }
    }
  }
}

}  // namespace bd
