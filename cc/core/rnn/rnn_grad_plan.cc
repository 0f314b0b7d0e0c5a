
#include "cc/core/rnn/rnn_grad.h"

namespace bd {

std::string MakeRnnGradPlan(const RnnDesc& desc, Isa isa, int threads, RnnGradPlan* plan) {
  RnnGradPlan p;
  if (std::string error = MakeRnnPlan(desc, isa, threads, &p.forward); !error.empty()) return error;
  if (!desc.training) return "the gradient needs what a training run keeps";
  const RnnPlan& f = p.forward;
  for (int i = 0; i < f.block / kRnnPanel; ++i) p.column[i] = i * kRnnPanel;
  p.packed_floats = f.panels() * kRnnPanel * desc.units;
  p.kernels = &RnnGradKernelsFor(isa);
  p.carry = p.scratch.Book<float>("carry", f.part * f.block, f.chunks());
  if (desc.cell == RnnCell::kLstm)
    p.cell = p.scratch.Book<float>("cell", f.part * f.block, f.chunks());
  if (desc.cell == RnnCell::kGru && !desc.reset_after) {
    p.reset = p.scratch.Book<float>("reset", f.part * f.block, f.chunks());
  }
  *plan = p;
  return p.scratch.Check();
}

// U transposed, in panels of 16 units: [16 units][gate * units + k][16].
void PackRnnGradWeights(const RnnGradPlan& plan, const float* recurrent_kernel, float* packed,
                        ThreadPool& pool) {
  const RnnDesc& d = plan.forward.desc;
  const int64_t columns = d.gates() * d.units;
  pool.ParallelFor((d.units + kRnnPanel - 1) / kRnnPanel, [&](int64_t panel, int) {
    float* to = packed + panel * columns * kRnnPanel;
    const int64_t first = panel * kRnnPanel;
    for (int64_t j = 0; j < kRnnPanel; ++j) {
      const float* row = recurrent_kernel + (first + j) * columns;
      for (int64_t k = 0; k < columns; ++k) {
        to[k * kRnnPanel + j] = first + j < d.units ? row[k] : 0.f;
      }
    }
  });
}

}  // namespace bd
