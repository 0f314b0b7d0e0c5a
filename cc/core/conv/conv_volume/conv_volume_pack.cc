// Weights [kd, kh, kw, ic, oc] -> HWIO whose source channels are those of kd slices.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {

void PackConvVolumeWeights(const ConvVolumePlan& plan, const float* weights, float* packed,
                           ThreadPool& pool) {
  const ConvVolumeDesc& d = plan.desc;
  const ConvDesc& s = d.slice;
  const ConvDesc& c = plan.conv.desc;
  const int64_t taps = s.kh() * s.kw(), padded = c.ic() / d.kd;  // source channels of a slice
  std::vector<float> hwio(taps * c.ic() * c.oc(), 0.f);
  pool.ParallelFor(d.kd * taps, [&](int64_t task, int) {
    const int64_t k = task / taps, tap = task % taps;
    std::memcpy(hwio.data() + (tap * c.ic() + k * padded) * c.oc(),
                weights + task * s.ic() * c.oc(), s.ic() * c.oc() * sizeof(float));
  });
  PackConvWeights(plan.conv, hwio.data(), packed, pool);
}

}  // namespace bd
