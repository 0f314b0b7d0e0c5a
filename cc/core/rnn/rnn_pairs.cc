#include "cc/core/rnn/rnn_pairs.h"

namespace bd {

void MultiplyInPairs(const RnnPairsArgs& args) {
  const RnnMatrix& m = *args.matrix;
  PanelCall<Panel> call;
  call.isa = args.isa;
  call.panels = m.panels.data();
  call.begin = args.first_panel;
  call.end = args.first_panel + args.num_panels;
  call.packed = args.packed;
  call.behind = args.behind;
  call.asks_ahead = args.behind != nullptr;
  const float* source = m.source.Bind(*args.scratch, args.copy, args.first_row, &call);
  const float factor = m.source.Factor(*args.scratch, args.copy);
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
  RunPanels(call, bind, EvenRows(source, args.rows, kBlock));
}

}  // namespace bd
