// One fork for a whole sequence. Steps of ParallelSteps, for each `steps_at_once` steps s of
// the sequence:
//
//   sums = x W + b of all of them
//   for each s:  sums += h U, the cell              (GRU, reset before: two, as r h is in between)
#include <algorithm>
#include <cstring>

#include "cc/base/parallel_steps.h"
#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

// A panel's block of k rows, 24 KB, stays in L1 while tiles of rows pass by.
constexpr int64_t kDepthAtOnce = 384;

class Run {
 public:
  Run(const RnnPlan& plan, const RnnBuffers& b)
      : p_(plan),
        d_(plan.desc),
        b_(b),
        scratch_(b.scratch),
        kept_(d_.training ? b.workspace : b.scratch) {
    hidden_ = kept_.Grant(p_.hidden);
    bias_ = scratch_.Grant(p_.bias);
    if (b.mask.data != nullptr || b.lengths != nullptr) modes_ = kept_.Grant(p_.modes);
    phases_ = d_.cell == RnnCell::kGru && !d_.reset_after ? 2 : 1;
  }

  void All(ThreadPool& pool) {
    PackBias();
    FillModes();
    SetState(b_.h0, hidden_);
    SetCells();
    const int64_t rounds = (d_.steps + p_.steps_at_once - 1) / p_.steps_at_once;
    ParallelSteps(pool, d_.steps * phases_ + rounds, p_.chunks(),
                  [&](int64_t step, int64_t chunk, int) { Step(step, chunk); });
    Finish();
  }

 private:
  void Step(int64_t step, int64_t chunk) {
    const int64_t round_steps = 1 + p_.steps_at_once * phases_;
    const int64_t first = step / round_steps * p_.steps_at_once, i = step % round_steps;
    if (i == 0) return Project(chunk, first);
    const int64_t s = first + (i - 1) / phases_;
    if (AllMasked(chunk, s)) {
      if (i % phases_ == 0) Cell(chunk, s, first, LastKernel());  // which copies
      return;
    }
    if (phases_ == 2 && i % 2 == 1) {
      AddRecurrent(chunk, s, first, HiddenBefore(s), 0, 2);
      return Cell(chunk, s, first, p_.kernels->gru_gates);
    }
    if (phases_ == 2) {
      AddRecurrent(chunk, s, first, Reset(s), 2, 1);
      return Cell(chunk, s, first, LastKernel());
    }
    AddRecurrent(chunk, s, first, HiddenBefore(s), 0, p_.panels);
    Cell(chunk, s, first, LastKernel());
  }

  // The kernel that ends a step of the sequence.
  RnnCellFn LastKernel() const {
    if (d_.cell == RnnCell::kVanilla) return p_.kernels->vanilla;
    if (d_.cell == RnnCell::kLstm) return p_.kernels->lstm;
    return d_.reset_after ? p_.kernels->gru_after : p_.kernels->gru_before;
  }

  // sums = x W + b of steps [first, first + steps_at_once).
  void Project(int64_t chunk, int64_t first) {
    const int64_t block = chunk % p_.blocks, part = chunk / p_.blocks;
    const int64_t count = std::min(p_.steps_at_once, d_.steps - first);
    const int64_t rows = p_.PartRows(part);
    float* sums = Sums(chunk, 0);
    RnnProductArgs a = {};
    a.src = b_.src.At(part * p_.part, d_.InputStep(first));
    a.inner_rows = rows;
    a.inner_stride = b_.src.batch_stride;
    a.outer_stride = d_.backwards ? -b_.src.step_stride : b_.src.step_stride;
    a.rows = count * rows;
    SetPanels(0, p_.panels, d_.inputs, &a);
    const float* panels = b_.packed + block * p_.panels * kRnnPanel * d_.inputs;
    const float* bias = bias_ + block * p_.columns;
    Multiply(panels, bias, 0, d_.inputs, sums, a);
    if (d_.bias_rows() < 2) return;
    const int64_t at = p_.columns - p_.block;
    for (int64_t r = 0; r < a.rows; ++r) {
      memcpy(sums + r * p_.columns + at, bias + at, sizeof(float) * p_.block);
    }
  }

  // sums[first_panel .. +num_panels) += src U
  void AddRecurrent(int64_t chunk, int64_t s, int64_t first, const float* src, int first_panel,
                    int num_panels) {
    const int64_t block = chunk % p_.blocks, part = chunk / p_.blocks;
    RnnProductArgs a = {};
    a.src = src + part * p_.part * d_.units;
    a.inner_rows = a.rows = p_.PartRows(part);
    a.inner_stride = d_.units;
    SetPanels(first_panel, num_panels, d_.units, &a);
    // The reset gate stands between these sums and the input's.
    if (d_.bias_rows() == 2) a.column[2] = static_cast<int>(3 * p_.block);
    const float* recurrent = b_.packed + p_.blocks * p_.panels * kRnnPanel * d_.inputs;
    const float* panels = recurrent + (block * p_.panels + first_panel) * kRnnPanel * d_.units;
    float* sums = Sums(chunk, s - first);
    Multiply(panels, sums, p_.columns, d_.units, sums, a);
  }

  void SetPanels(int first, int count, int64_t k, RnnProductArgs* a) const {
    a->num_panels = count;
    a->panel_stride = k * kRnnPanel;
    for (int i = 0; i < count; ++i) a->column[i] = (first + i) * kRnnPanel;
  }

  // Of one tile of rows all of k at once: weights are read once either way.
  void Multiply(const float* panels, const float* init, int64_t init_stride, int64_t k, float* dst,
                RnnProductArgs a) const {
    const int64_t depths = a.rows <= p_.product->tile_rows
                               ? 1
                               : std::max<int64_t>(1, (k + kDepthAtOnce - 1) / kDepthAtOnce);
    const float* src = a.src;
    for (int64_t i = 0; i < depths; ++i) {
      const int64_t begin = k * i / depths;
      a.src = src + begin;
      a.k = k * (i + 1) / depths - begin;
      a.panels = panels + begin * kRnnPanel;
      a.init = i == 0 ? init : dst;
      a.init_stride = i == 0 ? init_stride : p_.columns;
      a.dst = dst;
      a.dst_stride = p_.columns;
      p_.product->multiply(a);
    }
  }

  void Cell(int64_t chunk, int64_t s, int64_t first, RnnCellFn kernel) {
    const int64_t block = chunk % p_.blocks, part = chunk / p_.blocks;
    const int64_t row = part * p_.part, unit = block * p_.block;
    RnnCellArgs a = {};
    a.activation = d_.activation;
    a.recurrent_activation = d_.recurrent_activation;
    a.rows = p_.PartRows(part);
    a.block = p_.block;
    a.units = std::min(p_.block, d_.units - unit);
    a.gates = Sums(chunk, s - first);
    a.gates_stride = p_.columns;
    a.modes = modes_ == nullptr ? nullptr : modes_ + s * d_.batch + row;
    a.h_stride = d_.units;
    a.h = HiddenBefore(s) + row * d_.units + unit;
    a.h_next = HiddenBefore(s + 1) + row * d_.units + unit;
    if (d_.cell == RnnCell::kLstm) {
      float* cells = kept_.Grant(p_.cell, chunk);
      a.c = cells + s % p_.cells * p_.part * p_.block;
      a.c_next = cells + (s + 1) % p_.cells * p_.part * p_.block;
      a.c_stride = p_.block;
    }
    if (phases_ == 2) a.reset = Reset(s) + row * d_.units + unit;
    if (d_.sequences) {
      a.out = b_.dst.At(row, d_.OutputStep(s)) + unit;
    } else if (s == d_.steps - 1) {
      a.out = b_.dst.At(row, 0) + unit;
    }
    a.out_stride = b_.dst.batch_stride;
    kernel(a);
  }

  float* Sums(int64_t chunk, int64_t step) const {
    return kept_.Grant(p_.sums, chunk) + step * p_.PartRows(chunk / p_.blocks) * p_.columns;
  }
  float* HiddenBefore(int64_t s) const { return hidden_ + s % p_.states * d_.batch * d_.units; }
  float* Reset(int64_t s) const {
    return kept_.Grant(p_.reset) + (d_.training ? s : 0) * d_.batch * d_.units;
  }

  bool AllMasked(int64_t chunk, int64_t s) const {
    if (modes_ == nullptr) return false;
    const int64_t part = chunk / p_.blocks;
    const uint8_t* modes = modes_ + s * d_.batch + part * p_.part;
    return std::all_of(modes, modes + p_.PartRows(part), [](uint8_t m) { return m != kRnnRuns; });
  }

  // b in the order of the sums. Both biases of GRU's z and r add up.
  void PackBias() {
    const int64_t units = d_.units, gates = d_.gates();
    for (int64_t block = 0; block < p_.blocks; ++block) {
      for (int64_t c = 0; c < p_.columns; ++c) {
        const int64_t gate = c / p_.block, unit = block * p_.block + c % p_.block;
        float value = 0.f;
        if (b_.bias != nullptr && unit < units) {
          if (gate < gates) value = b_.bias[gate * units + unit];
          if (d_.bias_rows() == 2 && gate < 2) value += b_.bias[(3 + gate) * units + unit];
          if (gate == 3 && d_.bias_rows() == 2) value = b_.bias[5 * units + unit];
        }
        bias_[block * p_.columns + c] = value;
      }
    }
  }

  // A masked row keeps the output before, which is zero where no step has counted yet.
  void FillModes() {
    if (modes_ == nullptr) return;
    for (int64_t n = 0; n < d_.batch; ++n) {
      bool begun = false;
      for (int64_t s = 0; s < d_.steps; ++s) {
        const int64_t t = d_.InputStep(s);
        const bool counts = (b_.mask.data == nullptr || *b_.mask.At(n, t)) &&
                            (b_.lengths == nullptr || t < b_.lengths[n]);
        begun = begun || counts;
        modes_[s * d_.batch + n] = counts                      ? kRnnRuns
                                   : begun && !d_.zeros_masked ? kRnnKeeps
                                                               : kRnnZeros;
      }
    }
  }

  void SetState(const float* from, float* to) const {
    const size_t bytes = sizeof(float) * d_.batch * d_.units;
    if (from != nullptr) {
      memcpy(to, from, bytes);
    } else {
      memset(to, 0, bytes);
    }
  }

  void SetCells() const {
    if (d_.cell != RnnCell::kLstm) return;
    for (int64_t chunk = 0; chunk < p_.chunks(); ++chunk) {
      float* cells = kept_.Grant(p_.cell, chunk);
      memset(cells, 0, sizeof(float) * p_.part * p_.block);
      if (b_.c0 != nullptr)
        CopyCells(
            chunk, [](float* plain, float* c) { *c = *plain; }, const_cast<float*>(b_.c0), cells);
    }
  }

  template <typename Copy>
  void CopyCells(int64_t chunk, Copy copy, float* plain, float* cells) const {
    const int64_t block = chunk % p_.blocks, part = chunk / p_.blocks;
    const int64_t units = std::min(p_.block, d_.units - block * p_.block);
    for (int64_t r = 0; r < p_.PartRows(part); ++r) {
      for (int64_t u = 0; u < units; ++u) {
        copy(plain + (part * p_.part + r) * d_.units + block * p_.block + u,
             cells + r * p_.block + u);
      }
    }
  }

  void Finish() const {
    const size_t bytes = sizeof(float) * d_.batch * d_.units;
    if (b_.hn != nullptr) memcpy(b_.hn, HiddenBefore(d_.steps), bytes);
    if (b_.cn == nullptr) return;
    for (int64_t chunk = 0; chunk < p_.chunks(); ++chunk) {
      float* cells = kept_.Grant(p_.cell, chunk) + d_.steps % p_.cells * p_.part * p_.block;
      CopyCells(
          chunk, [](float* plain, float* c) { *plain = *c; }, b_.cn, cells);
    }
  }

  const RnnPlan& p_;
  const RnnDesc& d_;
  const RnnBuffers& b_;
  const Scratch scratch_, kept_;
  float* hidden_ = nullptr;
  float* bias_ = nullptr;
  uint8_t* modes_ = nullptr;
  int64_t phases_ = 1;
};

}  // namespace

void RunRnn(const RnnPlan& plan, const RnnBuffers& buffers, ThreadPool& pool) {
  if (plan.desc.batch == 0) return;
  Run(plan, buffers).All(pool);
}

}  // namespace bd
