// A 1x1 convolution of few pixels as a small-M product on plain weights (cc/core/inner_product).
#include <algorithm>
#include <memory>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/inner_product/gemv.h"

namespace bd {
namespace {

struct RowsPlan {
  ScratchPiece<float> row;  // a task's columns of dst, for each thread
};

// So few rows that packing would only read and keep a large matrix twice; where it is packed once
// for many calls, so few that reading it as it is is faster.
std::string Applies(const Algorithm&, const ConvDesc& d, Isa isa) {
  const GemvKernels& kernels = GemvKernelsFor(isa);
  const bool kept = d.keeps_weights && d.algorithm == ConvAlgorithm::kAuto;
  if (!d.src.channels_last() || !d.dst.channels_last() || !d.pointwise() || d.groups != 1 ||
      d.n() != 1 || d.pooled()) {
    return "not a product of matrices";
  }
  return d.oh() * d.ow() <= (kept ? kernels.max_kept_rows : kernels.max_rows) ? "" : "many rows";
}

ConvCost Cost(const Algorithm&, const ConvDesc& d, Isa, int) {
  return {0, static_cast<double>(d.ic()) * d.oc()};
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const auto own = std::make_shared<RowsPlan>();
  plan->own = own;
  plan->reads_plain_weights = true;
  plan->pack_key = {self.name, DataType::f32, 1};
  plan->packed_bytes = d.keeps_weights ? kBlock * sizeof(float) : 0;  // else nobody looks at them
  plan->bias.count = 0;                                               // read as it is
  if (plan->empty()) return;
  plan->tasks = GemvTasks(d.ic(), d.oc(), plan->threads);
  const int64_t columns = CeilDiv(plan->ocb, plan->tasks) * kBlock;
  own->row = plan->scratch.Book<float>("row", d.oh() * d.ow() * columns, plan->threads);
  plan->blocking = {{"strip_pixels", d.oh() * d.ow()}, {"task_blocks", columns / kBlock}};
}

// Nothing is packed but a note on weights that stay: 1 where all are finite, so that those that
// meet only zeros may be skipped, else 0.
void Pack(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  std::fill(packed, packed + plan.packed_floats(), 0.f);
  if (AllFinite(hwio, plan.desc.ic() * plan.desc.oc(), pool)) *packed = 1.f;
}

void Run(const ConvRun& run, ThreadPool& pool) {
  const ConvDesc& d = run.d;
  const int64_t tasks = run.plan.tasks, rows = run.plane();
  const bool finite =
      run.plan.packed_bytes > 0 && run.buffers.packed != nullptr && *run.buffers.packed != 0.f;
  const bool skips_zeros = finite && HasManyZeros(run.plan.isa, run.buffers.src, rows, d.ic());
  pool.ParallelFor(tasks, [&](int64_t t, int thread) {
    const int64_t first = GemvColumn(d.oc(), t, tasks);
    GemvArgs a;
    a.src = run.buffers.src;
    a.rows = rows;
    a.ic = d.ic();
    a.skips_zeros = skips_zeros;
    a.weights = run.buffers.plain + first;
    a.weights_stride = d.oc();
    a.bias = run.bias == nullptr ? nullptr : run.bias + first;
    a.dst = run.scratch.Grant(run.plan.Own<RowsPlan>().row, thread);
    a.count = GemvColumn(d.oc(), t + 1, tasks) - first;
    GemvKernelsFor(run.plan.isa).multiply(a);
    StorePlainRows(run, 0, 0, first, rows, a.count, a.dst);
  });
}

}  // namespace

const Algorithm kRows = {"rows", 0, false, Applies, Cost, Plan, Pack, Run};

}  // namespace bd
