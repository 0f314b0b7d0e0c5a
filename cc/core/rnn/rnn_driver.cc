// One fork for a whole sequence. Steps of ParallelSteps, for each `steps_at_once` steps s of
// the sequence:
//
//   weights as they are multiplied, once           (where they are packed otherwise)
//   x into pairs, or rounded                       (where W is multiplied so)
//   sums = x W + b of all of them
//   for each s:  sums += h U, the cell              (GRU, reset before: two, as r h is in between)
#include <algorithm>
#include <cstring>
#include <vector>

#include "cc/base/threads/parallel_steps.h"
#include "cc/core/rnn/rnn.h"
#include "cc/core/rnn/rnn_product.h"

namespace bd {
namespace {

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
    opening_ = p_.w.in_scratch || p_.u.in_scratch;
    before_ = p_.w.prepares() ? 2 : 1;
  }

  void All(ThreadPool& pool) {
    scales_ = d_.weights == DataType::s8 ? scratch_.Grant(p_.scales) : nullptr;
    widened_ = scratch_.Grant(p_.widened);
    OrderRnnScales(p_, b_, scales_);
    OrderRnnBias(p_, b_.bias, bias_);
    if (modes_ != nullptr) FillRnnModes(d_, b_, modes_);
    ListChunks();
    SetState();
    SetCells();
    const int64_t rounds = CeilDiv(d_.steps, p_.steps_at_once);
    prepared_.assign(pool.num_threads(), -1);
    ParallelSteps(pool, opening_ + d_.steps * phases_ + rounds * before_, p_.chunks(),
                  [&](int64_t step, int64_t chunk, int thread) { Step(step, chunk, thread); });
    Finish();
  }

 private:
  // What is the same in all steps.
  struct Chunk : RnnChunk {
    using RnnChunk::RnnChunk;
    float* sums = nullptr;
    float* cells = nullptr;
    int first_panel = 0, panels = 0;
  };

  void ListChunks() {
    const int64_t gates = d_.gates();
    chunks_.reserve(p_.chunks());
    for (int64_t i = 0; i < p_.chunks(); ++i) {
      Chunk& c = chunks_.emplace_back(p_, i);
      c.sums = kept_.Grant(p_.sums, i);
      if (d_.cell == RnnCell::kLstm) c.cells = kept_.Grant(p_.cell, i);
      c.first_panel = static_cast<int>(c.unit / kRnnPanel * gates);
      c.panels = static_cast<int>(CeilDiv(c.units, kRnnPanel) * gates);
    }
  }

  void Step(int64_t step, int64_t chunk, int thread) {
    const Chunk& c = chunks_[chunk];
    // ParallelSteps goes forth and back.
    const Chunk& next = chunks_[step % 2 == 0 ? std::min(chunk + 1, p_.chunks() - 1)
                                              : std::max<int64_t>(chunk - 1, 0)];
    if (step < opening_) {
      if (c.row > 0) return;  // the chunk of the first rows does it for all
      return WidenRnnPanels(p_, b_.packed, scales_, widened_, c.first_panel, c.panels);
    }
    const int64_t round_steps = before_ + p_.steps_at_once * phases_;
    const int64_t round = (step - opening_) / round_steps;
    const int64_t i = step - opening_ - round * round_steps;
    const int64_t first = round * p_.steps_at_once;
    if (i < before_ - 1) return PrepareInput(chunk, first);
    if (i < before_) return Project(c, next, first);
    const int64_t s = first + (i - before_) / phases_;
    const bool begins = (i - before_) % phases_ == 0, ends = phases_ == 1 || !begins;
    if (AllMasked(c, s)) {
      if (ends) Cell(c, s, first, LastKernel());  // which copies
      return;
    }
    if (phases_ == 1) {
      PrepareHidden(step, HiddenBefore(s), thread);
      AddRecurrent(c, next, s, first, HiddenBefore(s), thread, 0, c.panels);
      return Cell(c, s, first, LastKernel());
    }
    // Of each 16 units the panels of z and r, then that of h.
    const float* src = begins ? HiddenBefore(s) : Reset(s);
    PrepareHidden(step, src, thread);
    for (int panel = 0; panel < c.panels; panel += 3) {
      AddRecurrent(c, next, s, first, src, thread, begins ? panel : panel + 2, begins ? 2 : 1);
    }
    Cell(c, s, first, begins ? p_.kernels->gru_gates : LastKernel());
  }

  // The kernel that ends a step of the sequence.
  RnnCellFn LastKernel() const {
    if (d_.cell == RnnCell::kVanilla) return p_.kernels->vanilla;
    if (d_.cell == RnnCell::kLstm) return p_.kernels->lstm;
    return d_.reset_after ? p_.kernels->gru_after : p_.kernels->gru_before;
  }

  // Segments of x as they are multiplied, some by each chunk.
  void PrepareInput(int64_t chunk, int64_t first) const {
    const int64_t count = std::min(p_.steps_at_once, d_.steps - first);
    for (int64_t i = chunk; i * p_.segment_steps < count; i += p_.chunks()) {
      const int64_t begin = first + i * p_.segment_steps;
      const int64_t steps = std::min(p_.segment_steps, first + count - begin);
      p_.w.PrepareRows(p_.isa, scratch_, i, steps * d_.batch, [&](int64_t row) {
        return b_.src.At(row % d_.batch, d_.InputStep(begin + row / d_.batch));
      });
    }
  }

  // The state, or r h, as it is multiplied, once a step of each thread.
  void PrepareHidden(int64_t step, const float* src, int thread) {
    if (!p_.u.prepares() || prepared_[thread] == step) return;
    prepared_[thread] = step;
    p_.u.PrepareRows(p_.isa, scratch_, thread, d_.batch,
                     [&](int64_t row) { return src + row * d_.units; });
  }

  // sums = x W + b of steps [first, first + steps_at_once).
  void Project(const Chunk& c, const Chunk& next, int64_t first) const {
    const int64_t count = std::min(p_.steps_at_once, d_.steps - first);
    const float* bias = bias_ + c.block * p_.columns;
    if (p_.w.prepares()) {
      ProjectPrepared(c, next, count, bias);
    } else {
      ProductArgs a = {};
      a.src = b_.src.At(c.row, d_.InputStep(first));
      a.inner_rows = c.rows;
      a.inner_stride = b_.src.batch_stride;
      a.outer_stride = d_.backwards ? -b_.src.step_stride : b_.src.step_stride;
      a.rows = count * c.rows;
      a.num_panels = c.panels;
      a.column = p_.projected;
      a.init = bias;
      a.dst = c.sums;
      Multiply(p_.w, c.first_panel, next.first_panel, a);
    }
    if (d_.bias_rows() < 2) return;
    const int64_t at = p_.columns - p_.block;
    for (int64_t r = 0; r < count * c.rows; ++r) {
      memcpy(c.sums + r * p_.columns + at, bias + at, sizeof(float) * p_.block);
    }
  }

  // A panel at a time for all segments, so that it is read from memory once.
  void ProjectPrepared(const Chunk& c, const Chunk& next, int64_t count, const float* bias) const {
    for (int panel = 0; panel < c.panels; ++panel) {
      for (int64_t i = 0; i * p_.segment_steps < count; ++i) {
        const int64_t begin = i * p_.segment_steps;
        RnnRowsArgs a = Prepared(p_.w, c.first_panel + panel, 1, p_.projected + panel);
        const int after = panel + 1 < c.panels ? c.first_panel + panel + 1 : next.first_panel;
        if (i == 0) a.ahead = p_.w.Ahead(Base(p_.w), after);
        a.copy = i;
        a.first_row = p_.parts > 1 ? c.row : 0;
        a.rows = std::min(p_.segment_steps, count - begin) * c.rows;
        a.init = bias;
        a.dst = c.sums + begin * c.rows * p_.columns;
        MultiplyPrepared(a);
      }
    }
  }

  // sums[first_panel .. +num_panels) += src U
  void AddRecurrent(const Chunk& c, const Chunk& next, int64_t s, int64_t first, const float* src,
                    int thread, int first_panel, int num_panels) const {
    float* sums = Sums(c, s - first);
    const int* column = p_.recurrent + first_panel;
    if (split_ != nullptr) {
      const Bfloat16* const upper = PartsOf(src);
      const int panel = c.first_panel + first_panel;
      return p_.row->multiply({upper, upper + p_.row_parts(), d_.units,
                               p_.u.Panels(Base(p_.u), panel), PanelFloats(p_.u.weights, p_.u.k),
                               num_panels, column, Unscale(p_.u, panel), sums});
    }
    if (p_.u.prepares()) {
      RnnRowsArgs a = Prepared(p_.u, c.first_panel + first_panel, num_panels, column);
      a.ahead = p_.u.Ahead(Base(p_.u), next.first_panel + first_panel);
      a.copy = thread;
      a.first_row = c.row;
      a.rows = c.rows;
      a.init = a.dst = sums;
      a.init_stride = p_.columns;
      return MultiplyPrepared(a);
    }
    ProductArgs a = {};
    a.src = src + c.row * d_.units;
    a.inner_rows = a.rows = c.rows;
    a.inner_stride = d_.units;
    a.num_panels = num_panels;
    a.column = column;
    a.init = a.dst = sums;
    a.init_stride = p_.columns;
    Multiply(p_.u, c.first_panel + first_panel, next.first_panel + first_panel, a);
  }

  RnnRowsArgs Prepared(const RnnMatrix& matrix, int first_panel, int num_panels,
                       const int* column) const {
    RnnRowsArgs a = {};
    a.isa = p_.isa;
    a.matrix = &matrix;
    a.base = Base(matrix);
    a.packed = b_.packed;
    a.scales = ScalesOf(matrix);
    a.scratch = &scratch_;
    a.first_panel = first_panel;
    a.num_panels = num_panels;
    a.column = column;
    a.dst_stride = p_.columns;
    return a;
  }

  const float* Base(const RnnMatrix& matrix) const {
    return matrix.in_scratch ? widened_ : b_.packed;
  }

  // Of bytes, or null.
  const float* ScalesOf(const RnnMatrix& matrix) const {
    if (scales_ == nullptr) return nullptr;
    return scales_ + (&matrix == &p_.u ? p_.panels() * kRnnPanel : 0);
  }

  // Floats have scales of pairs, or those of the bytes that they were in them.
  const float* Unscale(const RnnMatrix& matrix, int first_panel) const {
    if (matrix.weights == DataType::f32) return matrix.Unscale(b_.packed, first_panel);
    return scales_ == nullptr ? nullptr : ScalesOf(matrix) + first_panel * kRnnPanel;
  }

  void Multiply(const RnnMatrix& matrix, int first_panel, int next_panel, ProductArgs a) const {
    a.unscale = Unscale(matrix, first_panel);
    a.dst_stride = p_.columns;
    MultiplyByTiles(*p_.product, matrix, Base(matrix), first_panel, next_panel, a);
  }

  float* OutputOf(const Chunk& c, int64_t s) const {
    if (d_.sequences) return b_.dst.At(c.row, d_.OutputStep(s)) + c.unit;
    return s == d_.steps - 1 ? b_.dst.At(c.row, 0) + c.unit : nullptr;
  }

  void Cell(const Chunk& c, int64_t s, int64_t first, RnnCellFn kernel) {
    RnnCellArgs a(c.Step(p_));
    a.keeps = d_.training;
    a.gates = Sums(c, s - first);
    a.modes = modes_ == nullptr ? nullptr : modes_ + s * d_.batch + c.row;
    a.h = HiddenBefore(s) + c.row * d_.units + c.unit;
    a.h_next = HiddenBefore(s + 1) + c.row * d_.units + c.unit;
    if (d_.cell == RnnCell::kLstm) {
      const int64_t floats = p_.part * p_.block;
      a.c = c.cells + (p_.cells == 1 ? 0 : s * floats);
      a.c_next = c.cells + (p_.cells == 1 ? 0 : (s + 1) * floats);
    }
    if (phases_ == 2) a.reset = Reset(s) + c.row * d_.units + c.unit;
    a.out = OutputOf(c, s);
    a.out_stride = b_.dst.batch_stride;
    kernel(a);
    if (split_ != nullptr) {
      SplitState(kernel == p_.kernels->gru_gates ? Reset(s) : HiddenBefore(s + 1), c.unit, c.units);
    }
  }

  // One row's state, or r h, as it is multiplied: its upper and its lower parts.
  Bfloat16* PartsOf(const float* state) const {
    const int64_t which = state == hidden_ ? 0 : state == hidden_ + d_.units ? 1 : 2;
    return split_ + which * 2 * p_.row_parts();
  }
  void SplitState(const float* state, int64_t unit, int64_t units) const {
    Bfloat16* const upper = PartsOf(state) + unit;
    p_.row->split(state + unit, units, upper, upper + p_.row_parts());
  }

  float* Sums(const Chunk& c, int64_t step) const { return c.sums + step * c.rows * p_.columns; }
  float* HiddenBefore(int64_t s) const {
    return hidden_ + (p_.states == 2 ? s & 1 : s) * d_.batch * d_.units;
  }
  float* Reset(int64_t s) const {
    return kept_.Grant(p_.reset) + (d_.training ? s : 0) * d_.batch * d_.units;
  }

  bool AllMasked(const Chunk& c, int64_t s) const {
    if (modes_ == nullptr) return false;
    const uint8_t* modes = modes_ + s * d_.batch + c.row;
    return std::all_of(modes, modes + c.rows, [](uint8_t m) { return m != kRnnRuns; });
  }

  void SetState() {
    const size_t bytes = sizeof(float) * d_.batch * d_.units;
    if (b_.h0 != nullptr) {
      memcpy(hidden_, b_.h0, bytes);
    } else {
      memset(hidden_, 0, bytes);
    }
    if (!p_.u_by_row) return;
    split_ = scratch_.Grant(p_.split);
    memset(split_, 0, sizeof(Bfloat16) * p_.split.count);
    SplitState(hidden_, 0, d_.units);
  }

  void SetCells() const {
    if (d_.cell != RnnCell::kLstm) return;
    for (const Chunk& c : chunks_) c.Load(p_, b_.c0, c.cells);
  }

  void Finish() const {
    const size_t bytes = sizeof(float) * d_.batch * d_.units;
    if (b_.hn != nullptr) memcpy(b_.hn, HiddenBefore(d_.steps), bytes);
    if (b_.cn == nullptr) return;
    for (const Chunk& c : chunks_) {
      c.Store(p_, c.cells + d_.steps % p_.cells * p_.part * p_.block, b_.cn);
    }
  }

  const RnnPlan& p_;
  const RnnDesc& d_;
  const RnnBuffers& b_;
  const Scratch scratch_, kept_;
  float* widened_ = nullptr;
  float* scales_ = nullptr;  // of bytes
  Bfloat16* split_ = nullptr;
  float* hidden_ = nullptr;
  float* bias_ = nullptr;
  uint8_t* modes_ = nullptr;
  int64_t phases_ = 1;
  int64_t opening_ = 0;            // steps before all rounds
  int64_t before_ = 1;             // steps of a round before those of the sequence
  std::vector<int64_t> prepared_;  // of each thread: the step whose state it has prepared
  std::vector<Chunk> chunks_;
};

}  // namespace

void RunRnn(const RnnPlan& plan, const RnnBuffers& buffers, ThreadPool& pool) {
  if (plan.desc.batch == 0) return;
  Run(plan, buffers).All(pool);
}

}  // namespace bd
