#include <algorithm>
#include <cstring>

#include "cc/core/pool/pool_grad.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

// A block of an image. Rows of dsrc become zero right before the first window adds to them, while
// the next step finds them in a cache.
void PoolGradPlane(const PoolGradPlan& plan, const PoolGradArgs& args, int64_t n, int64_t block) {
  const PoolDesc& desc = plan.desc;
  const Window1d &rows = desc.windows.h, &columns = desc.windows.w;
  const int64_t stride = columns.size * kBlock;
  const int64_t from = desc.src.offset(n, block, 0);
  int64_t zeroed = 0;
  const auto zero_until = [&](int64_t end) {
    if (end <= zeroed) return;
    memset(args.dsrc + from + zeroed * stride, 0, (end - zeroed) * stride * sizeof(float));
    zeroed = end;
  };
  PoolGradRow row;
  row.row_stride = stride;
  row.width = columns.size;
  row.kernel = columns.kernel;
  row.stride = columns.stride;
  row.pad = columns.pad_before;
  row.out = columns.out;
  for (int64_t o = 0; o < rows.out; ++o) {
    const int64_t first = o * rows.stride - rows.pad_before;
    const int64_t lo = std::max<int64_t>(first, 0), hi = std::min(first + rows.kernel, rows.size);
    if (hi <= lo) continue;
    zero_until(hi);
    const int64_t to = desc.dst.offset(n, block, o * columns.out);
    row.valid_rows = hi - lo;
    row.src = args.src + from + lo * stride;
    row.dsrc = args.dsrc + from + lo * stride;
    row.dst = args.dst + to;
    row.ddst = args.ddst + to;
    plan.kernels->row[static_cast<int>(desc.kind)](row);
  }
  zero_until(rows.size);
}

}  // namespace

std::string MakePoolGradPlan(const PoolDesc& desc, Isa isa, PoolGradPlan* plan) {
  PoolPlan forward;
  std::string error = MakePoolPlan(desc, isa, &forward);
  if (!error.empty()) return error;
  if (desc.src.d() != 1 || desc.windows.d.kernel != 1) return "the gradient is of planes alone";
  if (!desc.dst.blocked()) return "the gradient reads dst in blocks";
  plan->desc = desc;
  plan->kernels = &PoolGradKernelsFor(isa);
  return "";
}

void RunPoolGrad(const PoolGradPlan& plan, const PoolGradArgs& args, ThreadPool& pool) {
  const int64_t blocks = plan.desc.src.blocks();
  pool.ParallelFor(plan.desc.src.n() * blocks, [&](int64_t plane, int) {
    PoolGradPlane(plan, args, plane / blocks, plane % blocks);
  });
}

}  // namespace bd
