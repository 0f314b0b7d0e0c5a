
#include "cc/core/rnn/rnn_grad.h"

namespace bd {

std::string MakeRnnGradPlan(const RnnDesc& desc, Isa isa, int threads, RnnGradPlan* plan) {
  RnnGradPlan p;
  const std::string error = MakeRnnPlan(desc, isa, threads, &p.forward);
  if (!error.empty()) return error;
  if (!desc.training) return "the gradient needs what a training run keeps";
  const RnnPlan& f = p.forward;
  for (int i = 0; i < f.block / kRnnPanel; ++i) p.column[i] = i * kRnnPanel;
  p.packed_floats = f.panels() * kRnnPanel * desc.units;
  p.kernels = &RnnGradKernelsFor(isa);
  ScratchBook book;
  p.carry = book.Book<float>("carry", f.part * f.block, f.chunks());
  if (desc.cell == RnnCell::kLstm) p.cell = book.Book<float>("cell", f.part * f.block, f.chunks());
  if (desc.cell == RnnCell::kGru && !desc.reset_after) {
    p.reset = book.Book<float>("reset", f.part * f.block, f.chunks());
  }
  p.scratch_bytes = book.bytes();
  *plan = p;
  return "";
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
