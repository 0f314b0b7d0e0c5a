#include "cc/core/rnn/rnn_pairs.h"

#include "cc/base/cpu/cpu_model.h"
#include "cc/core/gemm/fip.h"

namespace bd {

bool PacksRnnPairs(Isa isa) { return FipKernelsFor(isa).tile_pixels > 0 && AddsBesideMultiplies(); }

void BookPairs(int64_t rows, int64_t copies, ScratchBook* book, RnnMatrix* matrix) {
  const int64_t blocks = CeilDiv(matrix->k, kBlock);
  // Of an odd number of cache lines, so that blocks begin in different sets of L1.
  const int64_t block_floats = (rows | 1) * kBlock;
  matrix->in_pairs = true;
  matrix->tap_offsets.clear();
  for (int64_t b = 0; b < blocks; ++b) matrix->tap_offsets.push_back(b * block_floats);
  matrix->source = book->Book<float>("rows in pairs", blocks * block_floats, copies);
  matrix->source_terms = book->Book<float>("terms of pairs", rows, copies);
  matrix->source_factor = book->Book<float>("factors of pairs", 1, copies);
}

void PrepareRnnRows(Isa isa, const RnnMatrix& matrix, const Scratch& scratch, int64_t copy,
                    int64_t rows, FunctionRef<const float*(int64_t)> row_at) {
  *scratch.Grant(matrix.source_factor, copy) =
      PackFipRows(isa, rows, matrix.k, row_at, matrix.tap_offsets.data(),
                  scratch.Grant(matrix.source, copy), scratch.Grant(matrix.source_terms, copy));
}

void MultiplyInPairs(const RnnPairsArgs& args) {
  const RnnMatrix& m = *args.matrix;
  PanelCall<Panel> call;
  call.isa = args.isa;
  call.family = TileFamily::kFip;
  call.panels = m.panels.data();
  call.begin = args.first_panel;
  call.end = args.first_panel + args.num_panels;
  call.packed = args.packed;
  call.behind = args.behind;
  call.asks_ahead = args.behind != nullptr;
  call.tap_offsets = m.tap_offsets.data();
  call.taps = m.k / kBlock;
  call.tail_length = m.k % kBlock;
  call.tail_taps = call.tail_length > 0;
  call.pixel_terms = args.scratch->Grant(m.source_terms, args.copy) + args.first_row;
  const float factor = *args.scratch->Grant(m.source_factor, args.copy);
  alignas(64) float unscale[kBlock];
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    const int column = args.column[g - args.first_panel];
    const float* columns = m.Unscale(args.packed, g);
    for (int64_t i = 0; i < kBlock; ++i) unscale[i] = columns[i] * factor;
    a->fip.channel_terms = args.packed + m.terms + g * kBlock;
    a->fip.unscale = unscale;
    a->dst = args.dst + column;
    TileEpilogue& e = a->epilogue;
    e.row_major = 1;
    e.valid_lanes = kBlock;
    e.dst_step = args.dst_stride;
    if (args.init_stride == 0) {
      e.bias = args.init + column;
    } else {
      e.acc_in = args.init + column;
      e.acc_scale = 1.f;
      e.acc_step = args.init_stride;
    }
  };
  const float* source = args.scratch->Grant(m.source, args.copy) + args.first_row * kBlock;
  RunPanels(call, bind, EvenRows(source, args.rows, kBlock));
}

}  // namespace bd
