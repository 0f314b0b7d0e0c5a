// Steps of ParallelSteps, from the last step of the computation to the first: a chunk adds what
// reaches its units through U from the step after, then differentiates its cell. So each
// needs all chunks of the step after only, and there is one barrier a step.
//
//   carry += R(s + 1) U^T;   S(s), carry of the cell's derivative
//
// GRU with the reset gate before the product has a product between, and two barriers:
//
//   carry += [S_z S_r](s + 1) U_zr^T;   S_z(s), S_h(s)
//   D (r h) = S_h(s) U_h^T;             S_r(s), carry += r D (r h)
#include <cstring>

#include "cc/base/threads/parallel_steps.h"
#include "cc/core/rnn/rnn_grad.h"

namespace bd {
namespace {

class Run {
 public:
  Run(const RnnGradPlan& plan, const RnnGradBuffers& b)
      : g_(plan),
        p_(plan.forward),
        d_(plan.forward.desc),
        b_(b),
        scratch_(b.scratch),
        kept_(const_cast<void*>(b.workspace)) {
    two_phases_ = d_.cell == RnnCell::kGru && !d_.reset_after;
  }

  void All(ThreadPool& pool) {
    const int64_t phases = two_phases_ ? 2 : 1;
    ParallelSteps(pool, d_.steps * phases + 1, p_.chunks(), [&](int64_t step, int64_t chunk, int) {
      if (step == 0) Begin(chunk);
      const int64_t s = d_.steps - 1 - step / phases;
      if (two_phases_ && step % 2 == 1) return SecondHalf(chunk, s);
      if (step > 0) AddThroughU(chunk, s + 1);
      if (s >= 0) return Differentiate(chunk, s);
      End(chunk);
    });
  }

 private:
  // carry and cell: what the outputs after the last step ask for.
  void Begin(int64_t chunk) {
    const RnnChunk at(p_, chunk);
    at.Load(p_, b_.d_hn, scratch_.Grant(g_.carry, chunk));
    if (d_.cell == RnnCell::kLstm) at.Load(p_, b_.d_cn, scratch_.Grant(g_.cell, chunk));
  }

  void End(int64_t chunk) {
    const RnnChunk at(p_, chunk);
    at.Store(p_, scratch_.Grant(g_.carry, chunk), b_.d_h0);
    if (d_.cell == RnnCell::kLstm) at.Store(p_, scratch_.Grant(g_.cell, chunk), b_.d_c0);
  }

  // dst += rows of step s times columns [first, first + k) of U, transposed.
  void Multiply(int64_t chunk, int64_t s, const RnnSequence<float>& rows, int64_t first, int64_t k,
                float* dst) const {
    const RnnChunk at(p_, chunk);
    const int64_t columns = d_.gates() * d_.units;
    ProductArgs a = {};
    a.src = rows.At(at.row, d_.InputStep(s)) + first;
    a.inner_rows = a.rows = at.rows;
    a.inner_stride = rows.batch_stride;
    a.k = k;
    a.panels = b_.packed + at.unit * columns + first * kRnnPanel;
    a.panel_stride = columns * kRnnPanel;
    a.num_panels = static_cast<int>(CeilDiv(at.units, kRnnPanel));
    a.column = g_.column;
    a.init = a.dst = dst;
    a.init_stride = a.dst_stride = p_.block;
    p_.product->multiply(a);
  }

  void AddThroughU(int64_t chunk, int64_t s) {
    const int64_t gates = two_phases_ ? 2 : d_.gates();
    const RnnSequence<float>& rows = b_.d_recurrent.data != nullptr ? b_.d_recurrent : b_.d_sums;
    Multiply(chunk, s, rows, 0, gates * d_.units, scratch_.Grant(g_.carry, chunk));
  }

  RnnGradArgs Args(int64_t chunk, int64_t s) {
    const RnnChunk at(p_, chunk);
    const int64_t t = d_.InputStep(s);
    RnnGradArgs a(at.Step(p_));
    a.gates = kept_.Grant(p_.sums, chunk) + s * at.rows * p_.columns;
    if (b_.masked) a.modes = kept_.Grant(p_.modes) + s * d_.batch + at.row;
    a.h = kept_.Grant(p_.hidden) + (s * d_.batch + at.row) * d_.units + at.unit;
    a.carry = scratch_.Grant(g_.carry, chunk);
    if (d_.cell == RnnCell::kLstm) {
      a.c = kept_.Grant(p_.cell, chunk) + s * p_.part * p_.block;
      a.c_next = a.c + p_.part * p_.block;
      a.dc = scratch_.Grant(g_.cell, chunk);
    }
    if (d_.sequences) {
      a.d_out = b_.d_dst.At(at.row, d_.OutputStep(s)) + at.unit;
    } else if (s == d_.steps - 1) {
      a.d_out = b_.d_dst.At(at.row, 0) + at.unit;
    }
    a.d_out_stride = b_.d_dst.batch_stride;
    a.d_sums = b_.d_sums.At(at.row, t) + at.unit;
    a.d_sums_stride = b_.d_sums.batch_stride;
    a.gate_stride = d_.units;
    if (b_.d_recurrent.data != nullptr) a.d_recurrent = b_.d_recurrent.At(at.row, t) + at.unit;
    a.before = b_.before.At(at.row, t) + at.unit;
    a.before_stride = b_.before.batch_stride;
    if (two_phases_) {
      a.d_reset = scratch_.Grant(g_.reset, chunk);
      a.reset = b_.reset.At(at.row, t) + at.unit;
    }
    return a;
  }

  void Differentiate(int64_t chunk, int64_t s) {
    const RnnGradArgs a = Args(chunk, s);
    switch (d_.cell) {
      case RnnCell::kVanilla:
        return g_.kernels->vanilla(a);
      case RnnCell::kLstm:
        return g_.kernels->lstm(a);
      default:
        return (two_phases_ ? g_.kernels->gru_before : g_.kernels->gru_after)(a);
    }
  }

  void SecondHalf(int64_t chunk, int64_t s) {
    float* reset = scratch_.Grant(g_.reset, chunk);
    memset(reset, 0, sizeof(float) * p_.part * p_.block);
    Multiply(chunk, s, b_.d_sums, 2 * d_.units, d_.units, reset);
    g_.kernels->gru_gates(Args(chunk, s));
  }

  const RnnGradPlan& g_;
  const RnnPlan& p_;
  const RnnDesc& d_;
  const RnnGradBuffers& b_;
  const Scratch scratch_, kept_;
  bool two_phases_ = false;
};

}  // namespace

void RunRnnGrad(const RnnGradPlan& plan, const RnnGradBuffers& buffers, ThreadPool& pool) {
  if (plan.forward.desc.batch == 0) return;
  Run(plan, buffers).All(pool);
}

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
  pool.ParallelFor(CeilDiv(d.units, kRnnPanel), [&](int64_t panel, int) {
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
