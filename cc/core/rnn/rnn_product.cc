#include "cc/core/rnn/rnn_product.h"

#include <algorithm>

namespace bd {
namespace {

// A panel's block of k rows, 24 KB, stays in L1 while tiles of rows pass by.
constexpr int64_t kDepthAtOnce = 384;

}  // namespace

void RnnMatrix::BookRows(RnnRows as, int64_t count, int64_t copies, ScratchBook* book) {
  rows = as;
  if (as == RnnRows::kPairs) return pairs.BookCopied(k, count, copies, book);
  rounded = book->Book<float>("rows", count * rounded_stride(), copies);
}

void RnnMatrix::PrepareRows(Isa isa, const Scratch& scratch, int64_t copy, int64_t count,
                            FunctionRef<const float*(int64_t)> row_at) const {
  if (rows == RnnRows::kPairs) return pairs.Copy(isa, scratch, copy, count, row_at);
  float* to = scratch.Grant(rounded, copy);
  for (int64_t i = 0; i < count; ++i, to += rounded_stride()) {
    Bf16TileKernelsFor(isa).row({DataType::f32, row_at(i), k, to, nullptr, nullptr});
  }
}

void MultiplyPrepared(const RnnRowsArgs& args) {
  static constexpr int64_t kWholeRow = 0;
  const RnnMatrix& m = *args.matrix;
  const bool pairs = m.rows == RnnRows::kPairs;
  PanelCall<Panel> call;
  call.isa = args.isa;
  call.panels = m.panels.data();
  call.begin = args.first_panel;
  call.end = args.first_panel + args.num_panels;
  call.packed = args.base;
  call.ahead = args.ahead;
  call.asks_ahead = args.ahead != nullptr;
  const float* source;
  FipCall in_pairs;
  if (pairs) {
    source = m.pairs.Bind(*args.scratch, args.copy, args.first_row, &in_pairs, &call);
    in_pairs.unscale = m.Unscale(args.packed, 0);
    in_pairs.column_terms = args.packed + m.terms;
  } else {
    call.family = TileFamily::kBf16;
    call.tap_offsets = &kWholeRow;
    call.taps = 1;
    call.tap_length = m.dwords();
    call.px_stride = m.rounded_stride();
    source = args.scratch->Grant(m.rounded, args.copy) + args.first_row * call.px_stride;
  }
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    const int column = args.column[g - args.first_panel];
    if (pairs && args.scales != nullptr) a->epilogue.scale = args.scales + g * kBlock;
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
  RunPanels(call, bind, EvenRows(source, args.rows, call.px_stride));
}

// Of one tile of rows all of k at once: weights are read once either way.
void MultiplyByTiles(const ProductKernels& kernels, const RnnMatrix& matrix, const float* base,
                     int first_panel, int next_panel, ProductArgs a) {
  const int64_t k = matrix.k;
  const bool one_tile = a.rows <= kernels.tile_rows;
  const int64_t depths = one_tile ? 1 : std::max<int64_t>(1, CeilDiv(k, kDepthAtOnce));
  const float* panels = matrix.Panels(base, first_panel);
  const float* next = matrix.Ahead(base, next_panel);
  const float* src = a.src;
  const int64_t line_rows = LineRows(matrix.weights);
  const auto bound = [&](int64_t i) {  // whole lines come before it
    return i == depths ? k : k * i / depths / line_rows * line_rows;
  };
  a.weights = matrix.weights;
  a.panel_stride = PanelFloats(matrix.weights, k);
  for (int64_t i = 0; i < depths; ++i) {
    const int64_t begin = bound(i);
    a.src = src + begin;
    a.k = bound(i + 1) - begin;
    a.panels = panels + PanelFloats(matrix.weights, begin);
    if (!one_tile)
      a.next = i + 1 < depths ? panels + PanelFloats(matrix.weights, begin + a.k) : next;
    kernels.multiply(a);
    a.init = a.dst;
    a.init_stride = a.dst_stride;
  }
}

}  // namespace bd
