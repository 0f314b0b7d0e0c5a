#include <algorithm>

#include "cc/core/softmax/softmax.h"

namespace bd {

void RunSoftmax(const SoftmaxPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  const int64_t channels = plan.desc.channels;
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t begin = task * plan.rows_per_task;
    const int64_t rows = std::min(plan.rows_per_task, plan.desc.rows - begin);
    plan.kernels->rows(src + begin * channels, rows, channels, dst + begin * channels);
  });
}

}  // namespace bd
