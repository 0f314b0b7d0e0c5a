// The definition, for tests: one element at a time, in double.
#pragma once

#include "cc/core/eltwise/eltwise.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {

// The same result, element by element in double, of float32.
inline void EltwiseRef(const EltwiseDesc& desc, const float* src, const float* const* args,
                       float* dst) {
  const TensorView &from = desc.src, &to = desc.dst;
  const int64_t lanes = from.lanes();
  int64_t i = 0;  // of dense operands
  for (int64_t plane = 0; plane < from.n() * from.blocks(); ++plane) {
    const int64_t n = plane / from.blocks(), block = plane % from.blocks();
    for (int64_t pixel = 0; pixel < from.pixels(); ++pixel) {
      for (int64_t lane = 0; lane < lanes; ++lane, ++i) {
        const double x = src[from.offset(n, block, pixel) + lane];
        const bool valid = lane < from.lanes_of(block);
        const double y = valid ? ApplyPostOpsRef(desc.post_ops, x, args, dst, i,
                                                 block * lanes + lane, plane * lanes + lane)
                               : 0.;
        dst[to.offset(n, block, pixel) + lane] = static_cast<float>(y);
      }
    }
  }
}

}  // namespace bd
