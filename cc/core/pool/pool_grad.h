// The gradient of pooling by its source.
//
//   PoolDesc -> MakePoolGradPlan -> PoolGradPlan (immutable) -> RunPoolGrad
//
//   max   ddst of a window goes to the first of its elements, row by row, that is the maximum
//   avg   each valid element of a window gets ddst / their number
//
// Elements of several windows get the sum; those of none get zero.
#pragma once

#include <string>

#include "cc/core/pool/pool.h"

namespace bd {

struct PoolGradPlan {
  PoolDesc desc;
  const PoolGradKernels* kernels = nullptr;
};

// Addresses of the first blocks: src and dst of the pooling, the gradient of dst, and its result.
// The average reads neither src nor dst.
struct PoolGradArgs {
  const float *src = nullptr, *dst = nullptr, *ddst = nullptr;
  float* dsrc = nullptr;
};

// `desc` is that of the pooling, of planes (nChw16c or nCw16c). Returns an empty string, or one
// line that names what is wrong.
std::string MakePoolGradPlan(const PoolDesc& desc, Isa isa, PoolGradPlan* plan);

void RunPoolGrad(const PoolGradPlan& plan, const PoolGradArgs& args, ThreadPool& pool);

}  // namespace bd
