// The definition of pool grad, for tests.
#pragma once

#include <algorithm>

#include "cc/core/pool/pool.h"

namespace bd {

// The same result from nested loops over the definition in pool_grad.h.
inline void PoolGradRef(const PoolDesc& desc, const PoolGradArgs& args) {
  const Window1d &rows = desc.windows.h, &cols = desc.windows.w;
  for (int64_t n = 0; n < desc.src.n(); ++n) {
    for (int64_t c = 0; c < desc.src.blocks() * 16; ++c) {
      const int64_t from = desc.src.offset(n, c / 16, 0) + c % 16;
      for (int64_t p = 0; p < rows.size * cols.size; ++p) args.dsrc[from + p * 16] = 0.f;
      for (int64_t o = 0; o < rows.out * cols.out; ++o) {
        const int64_t y = o / cols.out * rows.stride - rows.pad_before;
        const int64_t x = o % cols.out * cols.stride - cols.pad_before;
        const int64_t to = desc.dst.offset(n, c / 16, o) + c % 16;
        const int64_t top = std::max<int64_t>(y, 0), bottom = std::min(y + rows.kernel, rows.size);
        const int64_t left = std::max<int64_t>(x, 0), right = std::min(x + cols.kernel, cols.size);
        const float count = static_cast<float>((bottom - top) * (right - left));
        bool taken = false;
        for (int64_t h = top; h < bottom; ++h) {
          for (int64_t w = left; w < right; ++w) {
            const int64_t at = from + (h * cols.size + w) * 16;
            if (desc.kind == PoolKind::kAvg) {
              args.dsrc[at] += args.ddst[to] / count;
            } else if (!taken && args.src[at] == args.dst[to]) {
              args.dsrc[at] += args.ddst[to];
              taken = true;
            }
          }
        }
      }
    }
  }
}

}  // namespace bd
