// The definition, for tests: one element at a time, in double.
#include "cc/core/eltwise/eltwise.h"
#include "cc/core/post_ops/post_ops_ref.h"

namespace bd {

void EltwiseRef(const EltwiseDesc& desc, const float* src, const float* const* args, float* dst) {
  const int64_t lanes = desc.blocked ? 16 : desc.channels;
  const int64_t blocks = (desc.channels + lanes - 1) / lanes;
  for (int64_t plane = 0, i = 0; plane < desc.n * blocks; ++plane) {
    for (int64_t pixel = 0; pixel < desc.pixels; ++pixel) {
      for (int64_t lane = 0; lane < lanes; ++lane, ++i) {
        const int64_t channel = plane % blocks * lanes + lane;
        dst[i] = channel >= desc.channels
                     ? 0.f
                     : static_cast<float>(ApplyPostOpsRef(desc.post_ops, src[i], args, dst, i,
                                                          channel, plane * lanes + lane));
      }
    }
  }
}

}  // namespace bd
