// Pooling behind kernels that do not pool: a pass over the whole result.
#include "cc/core/conv/conv_run.h"

namespace bd {

void PoolWhole(const ConvPlan& plan, const float* whole, float* dst, ThreadPool& pool) {
  const ConvDesc& d = plan.desc;
  const int64_t rows = d.dst_h(), width = d.ow * kBlock;
  const int64_t image = ImageFloats(d.dst_image_blocks, plan.ocb, rows * d.dst_w());
  pool.ParallelFor(d.n * plan.ocb * rows, [&](int64_t t, int) {
    const float* src = whole + (t / rows * d.oh + t % rows * d.pool_h) * width;
    const int64_t n = t / rows / plan.ocb, row = t - n * plan.ocb * rows;
    float* to = dst + n * image + row * d.dst_w() * kBlock;
    ConvKernelsFor(plan.isa).max_row({src, width, to, d.dst_w()});
  });
}

}  // namespace bd
