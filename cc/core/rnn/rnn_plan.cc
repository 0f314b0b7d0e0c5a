#include <algorithm>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

// The panels of one gate of 16 units are too few streams of weights and chains of sums for one row;
// and where rows are few, what surrounds a chunk takes long beside its product: the latency of
// the cell, the claim. Then chunks are as large as leaves two for each thread.
int64_t BlockOf(const RnnDesc& d, int threads) {
  constexpr int64_t kFewRows = 4;
  if (d.cell != RnnCell::kVanilla && d.batch > kFewRows) return kRnnPanel;
  int64_t block = kRnnMaxBlock;
  while (block > kRnnPanel && d.units < 2 * threads * block) block /= 2;
  return block;
}

// The sums of x W of so many rows at once: enough that W, read once for them, costs little,
// and few enough that they stay in L3.
constexpr int64_t kRowsAtOnce = 192;
constexpr int64_t kSumsAtOnce = int64_t{1} << 20;  // floats

// Rows that are multiplied in pairs or as bfloat16: fewer do not pay for bringing them into the
// form.
constexpr int64_t kFewestPreparedRows = 6;
// Rows of x that share a scale, about.
constexpr int64_t kSegmentRows = 64;

// Rows in all that pay for widening all weights before.
constexpr int64_t kFewestWidenedRows = 64;
// Floats of W that wait in L2 and L3 until they are multiplied.
constexpr int64_t kMostWidenedFloats = int64_t{1} << 20;
// Steps that pay for making bfloat16 of bytes, which takes as long as four of them.
constexpr int64_t kFewestStepsOfBytes = 16;

// W or U, k rows, at *floats of the packed weights; unscale and terms follow later.
RnnMatrix PanelsOf(DataType weights, int64_t k, int64_t panels, int64_t* floats) {
  RnnMatrix m;
  m.k = k;
  m.weights = weights;
  for (int64_t i = 0; i < panels; ++i, *floats += PanelFloats(weights, k))
    m.panels.push_back({i, 1, *floats});
  return m;
}

bool RoundsRows(const RnnDesc& d, const RnnRowKernels& row) {
  return d.rounds_rows && row.multiply != nullptr;
}

bool ManyRows(const RnnDesc& d, const RnnRowKernels& row) {
  return !RoundsRows(d, row) && d.weights != DataType::f32 &&
         d.batch * d.steps >= kFewestWidenedRows;
}
bool WidensU(const RnnDesc& d, const RnnRowKernels& row) {
  return ManyRows(d, row) && d.batch >= kFewestPreparedRows;
}
// Rows of few samples multiply floats faster only in pairs.
bool WidensW(const RnnDesc& d, const RnnRowKernels& row, bool pairs) {
  const bool stays = pairs && d.inputs * d.gates() * d.units <= kMostWidenedFloats;
  return WidensU(d, row) || (ManyRows(d, row) && stays);
}

// As what U is multiplied. Bytes take a row twice as many operations as multiplying does, to become
// floats; as bfloat16 they take none (rnn_row_kernel.h).
DataType RecurrentType(const RnnDesc& d, const RnnRowKernels& row) {
  if (WidensU(d, row)) return DataType::f32;
  const bool by_row = d.batch == 1 && d.steps >= kFewestStepsOfBytes && row.multiply != nullptr;
  return by_row && d.weights == DataType::s8 ? DataType::bf16 : d.weights;
}

RnnMatrix Multiplied(const RnnMatrix& packed, DataType weights, int64_t* scratch_floats) {
  if (weights == packed.weights) return packed;
  RnnMatrix m = PanelsOf(weights, packed.k, packed.panels.size(), scratch_floats);
  m.in_scratch = true;
  m.unscale = packed.unscale;
  m.terms = packed.terms;
  return m;
}

// Where the terms of pairs stand, after both matrices.
void PlanTerms(int64_t* floats, RnnPlan* p) {
  for (RnnMatrix* m : {&p->packed_w, &p->packed_u}) {
    m->unscale = *floats;
    m->terms = m->unscale + p->panels() * kRnnPanel;
    *floats = m->terms + p->panels() * kRnnPanel;
  }
}

void PlanRows(RnnRows as, int threads, RnnPlan* p, ScratchBook* scratch) {
  const RnnDesc& d = p->desc;
  p->segment_steps =
      p->parts > 1 ? 1 : std::clamp<int64_t>(kSegmentRows / d.batch, 1, p->steps_at_once);
  p->segments = CeilDiv(p->steps_at_once, p->segment_steps);
  const int64_t rows = p->segment_steps * d.batch;
  const auto takes = [&](const RnnMatrix& m) {
    return as == RnnRows::kBfloat16 || m.weights == DataType::f32;
  };
  if (rows >= kFewestPreparedRows && takes(p->w)) p->w.BookRows(as, rows, p->segments, scratch);
  if (d.batch >= kFewestPreparedRows && takes(p->u)) p->u.BookRows(as, d.batch, threads, scratch);
}

}  // namespace

std::string MakeRnnPlan(const RnnDesc& desc, Isa isa, int threads, RnnPlan* plan) {
  if (desc.steps < 1) {
    return StrCat("a sequence of ", desc.steps, " steps: there must be at least one");
  }
  if (desc.weights != DataType::f32 && desc.training) {
    return StrCat("weights of ", DataTypeName(desc.weights),
                  " have no gradient; train with those of float32");
  }
  if (desc.rounds_rows && desc.weights != DataType::bf16) {
    return StrCat("round_rows is for weights of bfloat16, not for ", DataTypeName(desc.weights));
  }
  // Columns of gates, of which GRU has one more, in whole chunks.
  const Size columns = Size(desc.units + kRnnMaxBlock) * (desc.gates() + 1);
  if (desc.units < 1 || !((columns + desc.inputs) * desc.batch * desc.steps * 64).fits() ||
      !(columns * (Size(desc.inputs) + desc.units) * 64).fits() ||
      !(Size(desc.inputs) + columns <= kBlock * Size::kMostEntries)) {
    return StrCat("batch ", desc.batch, ", ", desc.inputs, " inputs and ", desc.units,
                  " units: sizes must not be negative, nor too large, and there must be a unit");
  }
  RnnPlan p;
  p.desc = desc;
  p.isa = isa;
  p.product = &ProductKernelsFor(isa);
  p.kernels = &RnnCellKernelsFor(isa);
  p.row = &RnnRowKernelsFor(isa);
  p.block = BlockOf(desc, threads);
  p.blocks = CeilDiv(desc.units, p.block);
  // The recurrent share of GRU's third gate has sums of its own where r comes between.
  p.columns = (desc.gates() + (desc.bias_rows() == 2)) * p.block;
  for (int i = 0; i < desc.gates() * p.block / kRnnPanel; ++i) {
    const int gate = i % desc.gates(), unit = i / desc.gates() * kRnnPanel;
    // Between the sums of GRU's third gate stands the reset gate.
    const bool has_own_bias = gate == 2 && desc.bias_rows() == 2;
    p.projected[i] = static_cast<int>(gate * p.block) + unit;
    p.recurrent[i] = static_cast<int>((gate + has_own_bias) * p.block) + unit;
  }
  p.packed_w = PanelsOf(desc.weights, desc.inputs, p.panels(), &p.packed_floats);
  p.packed_u = PanelsOf(desc.weights, desc.units, p.panels(), &p.packed_floats);
  const bool rounds = RoundsRows(desc, *p.row);
  const bool pairs = desc.batch > 0 && !desc.direct && !rounds && GainsFromFip(isa);
  if (pairs) PlanTerms(&p.packed_floats, &p);

  // Few units and many rows: parts of the batch are chunks, too, of whole tiles.
  p.parts = 1;
  const int64_t tile = p.product->tile_rows;
  if (p.blocks < 2 * threads) {
    p.parts = std::max<int64_t>(
        1, std::min((2 * threads + p.blocks - 1) / p.blocks, desc.batch / (2 * tile)));
  }
  p.part = CeilDiv(desc.batch, p.parts);
  if (p.parts > 1) p.part = RoundUp(p.part, tile);
  p.parts = p.part == 0 ? 1 : CeilDiv(desc.batch, p.part);

  const int64_t rows = std::max<int64_t>(1, desc.batch), floats = p.columns * p.blocks;
  p.steps_at_once = std::max(kRowsAtOnce / rows, kSumsAtOnce / (rows * floats));
  p.steps_at_once = std::clamp<int64_t>(p.steps_at_once, 1, desc.steps);
  if (desc.training) p.steps_at_once = desc.steps;

  int64_t widened = 0;
  const bool widens = WidensW(desc, *p.row, pairs);
  p.w = Multiplied(p.packed_w, widens ? DataType::f32 : desc.weights, &widened);
  p.u = Multiplied(p.packed_u, RecurrentType(desc, *p.row), &widened);

  ScratchBook scratch, workspace;
  ScratchBook& kept = desc.training ? workspace : scratch;
  p.states = desc.training ? desc.steps + 1 : 2;
  p.cells = desc.training ? desc.steps + 1 : 1;
  p.sums = kept.Book<float>("sums", p.steps_at_once * p.part * p.columns, p.chunks());
  p.hidden = kept.Book<float>("hidden", p.states * desc.batch * desc.units);
  if (desc.cell == RnnCell::kLstm) {
    p.cell = kept.Book<float>("cell", p.cells * p.part * p.block, p.chunks());
  }
  p.modes = kept.Book<uint8_t>("modes", desc.steps * desc.batch);
  p.u_by_row = desc.batch == 1 && p.u.weights == DataType::bf16 && p.row->multiply != nullptr;
  p.split = scratch.Book<Bfloat16>("split state", p.u_by_row ? 6 * p.row_parts() : 0);
  p.bias = scratch.Book<float>("bias", p.blocks * p.columns);
  if (desc.cell == RnnCell::kGru && !desc.reset_after) {
    p.reset = kept.Book<float>("reset", (desc.training ? desc.steps : 1) * desc.batch * desc.units);
  }
  if (pairs || (rounds && desc.batch > 0)) {
    PlanRows(pairs ? RnnRows::kPairs : RnnRows::kBfloat16, threads, &p, &scratch);
  }
  p.widened = scratch.Book<float>("widened weights", widened);
  p.scales = scratch.Book<float>("scales of weights",
                                 desc.weights == DataType::s8 ? 2 * p.panels() * kRnnPanel : 0);
  p.scratch = scratch;
  p.workspace_bytes = workspace.bytes();
  *plan = p;
  const std::string error = scratch.Check();
  return error.empty() ? workspace.Check() : error;
}

}  // namespace bd
