// Runs matrix products: gemm.h.
#include "cc/core/gemm/gemm.h"

#include <cstring>
#include <limits>

#include "cc/base/machine.h"
#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/low_precision_pack.h"
#include "cc/core/gemm/tiles/digit_kernel.h"

namespace bd {
namespace {

// Fewer rows wait for B; bringing them into pairs would only take longer.
constexpr int64_t kFewestPairedRows = 4;
// Rows of A in pairs that share a scale.
constexpr int64_t kSegmentRows = 64;

bool InPairs(const GemmPlan& plan, int64_t rows) { return plan.pairs && rows >= kFewestPairedRows; }

struct Range {
  int64_t begin, end;
};

// So many rows multiply a B that widens as it is packed: widening a panel takes as long as two or
// three rows, and low-precision weights cost each tile of rows an eighth of its time.
constexpr int64_t kMostLowPrecisionRows = 20;
bool StaysLowPrecision(const GemmPlan& plan, int64_t rows) {
  return plan.desc.widens && rows <= kMostLowPrecisionRows;
}

// Whether such rows do so in integers.
bool InDigits(const GemmPlan& plan) {
  return (plan.desc.b == DataType::s8 || plan.desc.b == DataType::u8) &&
         DigitKernelsFor(plan.isa).row != nullptr && plan.desc.k <= kMostInt8Products;
}

int64_t RowsOfGroup(const GemmPlan& plan) {
  return plan.desc.b == DataType::u8 ? plan.desc.group : plan.desc.k;
}

// What products of floats have in scratch: A in digits; or in pairs, a copy of FipRows for each
// segment of rows, and a panel of B, widened, for each thread.
struct FloatRoom {
  FloatRoom(const GemmPlan& plan, int64_t rows) {
    if (StaysLowPrecision(plan, rows)) {
      if (!InDigits(plan) || plan.desc.k == 0) return;
      digits = book.Book<int8_t>("digits", Size(rows) * DigitBytes(plan.desc.b, plan.desc.k));
      scales = book.Book<float>("scales", rows);
      sums = book.Book<int32_t>("sums",
                                Size(rows) * kDigits * CeilDiv(plan.desc.k, RowsOfGroup(plan)));
      return;
    }
    if (plan.desc.widens) {
      widened = book.Book<float>("a panel of b", plan.widened_floats, plan.desc.threads);
    }
    if (!InPairs(plan, rows)) return;
    // Of equal size, and an even number of them where there are more than one.
    segments = rows <= kSegmentRows ? 1 : 2 * CeilDiv(rows, 2 * kSegmentRows);
    segment_rows = CeilDiv(rows, segments);
    segments = CeilDiv(rows, segment_rows);
    a.BookCopied(plan.desc.k, segment_rows, segments, &book);
  }

  Range RowsOf(int64_t segment, int64_t rows) const {
    return {segment * segment_rows, std::min(rows, (segment + 1) * segment_rows)};
  }

  ScratchBook book;
  ScratchPiece<float> widened, scales;
  ScratchPiece<int8_t> digits;
  ScratchPiece<int32_t> sums;
  int64_t segments = 0, segment_rows = 0;
  FipRows a;
};

// Part i of n of some rows, of whole tiles but for the last rows.
Range PartOfRows(int64_t rows, int64_t tile, int64_t i, int64_t n) {
  const int64_t tiles = CeilDiv(rows, tile);
  return {tiles * i / n * tile, std::min(rows, tiles * (i + 1) / n * tile)};
}

// Rows of A as tiles read them: in dwords, and of bytes with the scales of rows, or null.
struct RowsOfA {
  const float* at;
  int64_t stride;
  const float* scales;
};

// Copies of low-precision rows, in whole dwords.
struct CopiedRows {
  CopiedRows(const GemmPlan& plan, int64_t rows) {
    // A scale for each row of floats.
    const bool scaled = plan.family == TileFamily::kInt8 && plan.desc.a == DataType::f32;
    data = book.Book<float>("rows", Size(rows) * plan.k_dwords);
    scales = book.Book<float>("scales", scaled ? rows : 0);
  }

  ScratchBook book;
  ScratchPiece<float> data, scales;
};

// Low-precision rows that are whole dwords are read where they lie.
bool ReadsInPlace(const GemmPlan& plan) {
  return plan.desc.a == (plan.family == TileFamily::kBf16 ? DataType::bf16 : DataType::u8) &&
         plan.desc.k % PerDword(plan.family) == 0;
}

RowsOfA CopyRows(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool) {
  const CopiedRows copied(plan, rows);
  const Scratch scratch(args.scratch);
  float* const data = scratch.Grant(copied.data);
  float* const scales = scratch.Grant(copied.scales);
  const auto copy = plan.family == TileFamily::kBf16 ? Bf16TileKernelsFor(plan.isa).row
                                                     : Int8TileKernelsFor(plan.isa).row;
  constexpr int64_t kTaskNumbers = 32 << 10;
  const int64_t tasks = std::clamp<int64_t>(rows * plan.desc.k / kTaskNumbers, 1, rows);
  pool.ForRanges(rows, tasks, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const void* src = BytesFrom(args.a, row * plan.desc.k * SizeOf(plan.desc.a));
      copy({plan.desc.a, src, plan.desc.k, data + row * plan.k_dwords,
            scales == nullptr ? nullptr : scales + row, args.a_factors});
    }
  });
  return {data, plan.k_dwords, scales};
}

// Bytes as tiles see them: of copied rows the zero point is another.
Quantization QuantizationOfA(const GemmPlan& plan) {
  Quantization a = plan.desc.a_quantization;
  if (plan.desc.a == DataType::f32) return {1.f, 128};
  if (plan.desc.a == DataType::s8) a.zero_point += 128;
  return a;
}

// What tiles read of columns [column, column + width), zeros after the last column.
void CopyColumns(const float* from, int64_t column, int64_t width, int64_t n, float* to) {
  const int64_t valid = std::min(width, n - column);
  std::memset(to + valid, 0, (width - valid) * sizeof(float));
  std::memcpy(to, from + column, valid * sizeof(float));
}

// C and what happens to sums, of one panel from row `row` on. `bias` is room for a last panel's.
void BindC(const GemmPlan& plan, const GemmArgs& args, int64_t row, const Panel& panel, float* bias,
           TileArgs* a) {
  const EpilogueTensors& tensors = plan.desc.tensors;
  const int64_t n = plan.desc.n;
  const int64_t column = panel.first_block * kBlock;
  const int64_t columns = std::min(panel.blocks * kBlock, n - column);
  a->dst = static_cast<float*>(BytesFrom(args.c, (row * n + column) * tensors.dst_bytes));
  TileEpilogue& e = a->epilogue;
  e.tensors = tensors;
  e.row_major = 1;
  e.valid_lanes = static_cast<int32_t>(columns - (panel.blocks - 1) * kBlock);
  e.dst_step = e.operand_step = e.channels = n;
  e.dst_offset = row * n + column;
  e.channel = column;
  static_cast<Clamp&>(e) = args;
  e.program = args.program;
  if (args.bias != nullptr) {
    e.bias = args.bias + column;
    if (columns < panel.blocks * kBlock) {  // tiles read whole blocks
      CopyColumns(args.bias, column, panel.blocks * kBlock, n, bias);
      e.bias = bias;
    }
  }
  if (args.add != nullptr) {
    e.acc_in = BytesFrom(args.add, (row * n + column) * tensors.sum_bytes);
    e.acc_scale = args.add_scale;
    e.acc_step = n;
    e.acc_block_stride = kBlock;
  }
}

const float* LowPrecisionBlock(const GemmPlan& plan, const GemmArgs& args, int64_t block) {
  return args.packed + block * PanelFloats(plan.desc.b, plan.desc.k);
}

// Rows [first, first + rows) of a block of a B that widens, all of one group, as floats into rows
// of `width`.
void WidenRows(const GemmPlan& plan, const GemmArgs& args, int64_t block, int64_t first,
               int64_t rows, float* to, int64_t width) {
  const GemmDesc& d = plan.desc;
  const int64_t column = block * kBlock, group = RowsOfGroup(plan);
  const float* const of_group = args.b_scales + first / group * d.n;
  const bool scaled = d.b != DataType::bf16;
  alignas(64) float steps[kBlock], offsets[kBlock];
  if (scaled) CopyColumns(of_group, column, kBlock, d.n, steps);
  if (d.b == DataType::u8) {
    CopyColumns(of_group + CeilDiv(d.k, group) * d.n, column, kBlock, d.n, offsets);
  }
  ProductKernelsFor(plan.isa).widen({d.b,
                                     LowPrecisionBlock(plan, args, block) + PanelFloats(d.b, first),
                                     rows, scaled ? steps : nullptr, to, width, offsets});
}

// A panel of B that widens as one of floats, with what pairs need after it.
void WidenPanel(const GemmPlan& plan, const GemmArgs& args, const Panel& panel, float* to) {
  const int64_t width = panel.blocks * kBlock, k = plan.desc.k, group = RowsOfGroup(plan);
  for (int64_t b = 0; b < panel.blocks; ++b) {
    for (int64_t first = 0; first < k; first += group) {
      WidenRows(plan, args, panel.first_block + b, first, std::min(group, k - first),
                to + first * width + b * kBlock, width);
    }
  }
  if (!plan.pairs) return;
  PackFip(plan.isa, plan.desc.k, plan.desc.k / kBlock, width, to, to + plan.unscale,
          to + plan.terms);
}

// Few rows of A in digits; null where no row has any. Those without are zeros here, and are
// multiplied as floats, so that no row's result depends on its neighbours.
struct RowsInDigits : DigitRows {
  bool has[kMostLowPrecisionRows] = {};
};

RowsInDigits DigitsOf(const GemmPlan& plan, const GemmArgs& args, int64_t rows) {
  const FloatRoom room(plan, rows);
  if (room.digits.count == 0) return {};
  const Scratch scratch(args.scratch);
  int8_t* const digits = scratch.Grant(room.digits);
  float* const scales = scratch.Grant(room.scales);
  int32_t* const sums = scratch.Grant(room.sums);
  const int64_t k = plan.desc.k, group = RowsOfGroup(plan);
  const int64_t bytes = DigitBytes(plan.desc.b, k), row_sums = kDigits * CeilDiv(k, group);
  RowsInDigits result = {{nullptr, scales, sums}};
  for (int64_t row = 0; row < rows; ++row) {
    const auto* src = static_cast<const float*>(args.a) + row * plan.desc.k;
    const DigitRow to = {plan.desc.b,          src, k, group, digits + row * bytes, scales + row,
                         sums + row * row_sums};
    result.has[row] = DigitKernelsFor(plan.isa).row(to);
    if (result.has[row]) {
      result.digits = digits;
    } else {
      std::fill_n(to.digits, bytes, int8_t{0});
      std::fill_n(to.sums, row_sums, 0);
      *to.scale = 1;
    }
  }
  return result;
}

bool AreFinite(const float* x, int64_t count) {
  float zero = 0;
  for (int64_t i = 0; i < count; ++i) zero += x[i] * 0.f;
  return zero == 0;
}

// A row times a block of a B with steps, of whose numbers each becomes a float before it is
// multiplied, as for many rows: of an infinity times numbers plus the same times offsets, and of
// 3e38 times numbers, the sums would not be finite where those of the product are. Begins at
// dst[16].
void MultiplyWidened(const GemmPlan& plan, const GemmArgs& args, int64_t row, int64_t block,
                     float* dst) {
  constexpr int64_t kAtOnce = 64;  // rows of B: whole lines, as groups are
  const int64_t k = plan.desc.k, group = RowsOfGroup(plan);
  const int column = 0;
  alignas(64) float floats[kAtOnce * kBlock];
  ProductArgs p = {};
  p.weights = DataType::f32;
  p.inner_rows = p.rows = p.num_panels = 1;
  p.panels = floats;
  p.column = &column;
  p.init = p.dst = dst;
  for (int64_t first = 0; first < k; first += p.k) {
    p.k = std::min({kAtOnce, group - first % group, k - first});
    WidenRows(plan, args, block, first, p.k, floats, kBlock);
    p.src = static_cast<const float*>(args.a) + row * k + first;
    ProductKernelsFor(plan.isa).multiply(p);
  }
}

// Few rows times blocks [begin, end) of a B that widens, as it is.
void RunLowPrecision(const GemmPlan& plan, const GemmArgs& args, const RowsInDigits& in_digits,
                     int64_t rows, Range blocks) {
  constexpr int64_t kAtOnce = 4, kWidth = kAtOnce * kBlock;
  const int of_block = static_cast<int>(rows * kBlock);  // sums are [block][row][16]
  const int at[kAtOnce] = {0, of_block, 2 * of_block, 3 * of_block};
  const ProductKernels& kernels = ProductKernelsFor(plan.isa);
  const int64_t n = plan.desc.n;
  alignas(64) float scales[kWidth];
  alignas(64) float bias[kMostLowPrecisionRows * kWidth] = {}, sums[kMostLowPrecisionRows * kWidth];
  ProductArgs p = {};
  p.src = static_cast<const float*>(args.a);
  p.inner_rows = p.rows = rows;
  p.inner_stride = plan.desc.k;
  p.k = plan.desc.k;
  p.weights = plan.desc.b;
  p.panel_stride = PanelFloats(plan.desc.b, plan.desc.k);
  p.column = at;
  p.unscale = plan.desc.b == DataType::s8 ? scales : nullptr;
  p.group = RowsOfGroup(plan);
  p.columns = kWidth;
  p.group_stride = n;
  p.init = bias;
  p.dst = sums;
  p.dst_stride = kBlock;
  GemmArgs of_c = args;
  of_c.bias = nullptr;  // is where sums begin
  for (int64_t block = blocks.begin; block < blocks.end; block += kAtOnce) {
    const int64_t count = std::min(kAtOnce, blocks.end - block), column = block * kBlock;
    for (int64_t b = 0; b < count && args.bias != nullptr; ++b) {
      CopyColumns(args.bias, column + b * kBlock, kBlock, n, bias + at[b]);
    }
    if (plan.desc.b == DataType::s8) CopyColumns(args.b_scales, column, kWidth, n, scales);
    if (plan.desc.b == DataType::u8) {
      p.unscale = args.b_scales + column;
      p.offsets = p.unscale + CeilDiv(plan.desc.k, p.group) * n;
      p.columns = p.k > 0 ? n - column : 0;
    }
    p.panels = LowPrecisionBlock(plan, args, block);
    p.num_panels = static_cast<int>(count);
    p.next = block + 2 * kAtOnce <= blocks.end ? LowPrecisionBlock(plan, args, block + kAtOnce)
                                               : nullptr;
    if (in_digits.digits == nullptr) {
      kernels.multiply(p);
    } else {
      DigitKernelsFor(plan.isa).multiply(p, in_digits);
      ProductArgs one = p;
      one.inner_rows = one.rows = 1;
      for (int64_t row = 0; row < rows; ++row) {
        if (in_digits.has[row]) continue;
        one.src = p.src + row * p.inner_stride;
        one.dst = sums + row * kBlock;
        kernels.multiply(one);
      }
    }
    for (int64_t i = 0; i < count * rows && p.unscale != nullptr; ++i) {
      if (AreFinite(sums + i * kBlock, kBlock)) continue;
      std::copy_n(bias + i / rows * of_block, kBlock, sums + i * kBlock);
      MultiplyWidened(plan, args, i % rows, block + i / rows, sums + i * kBlock);
    }
    TileArgs tile = {};
    BindC(plan, of_c, 0, {block, count, 0}, nullptr, &tile);
    EpilogueKernelsFor(plan.isa).of_floats(tile.epilogue, {sums, rows, count}, tile.dst);
  }
}

int64_t AllTaps(const GemmPlan& plan) { return static_cast<int64_t>(plan.tap_offsets.size()); }

// Rows of A as they are times some panels, of K some taps. `after` are weights to bring along.
void RunTaps(const GemmPlan& plan, const GemmArgs& args, const RowsOfA& a_rows, Range rows,
             Range panels, Range taps, const float* ahead, float* widened) {
  const int64_t count = rows.end - rows.begin;
  PanelCall<Panel> call;
  call.isa = plan.isa;
  call.family = plan.family;
  call.panels = plan.panels.data();
  call.begin = panels.begin;
  call.end = panels.end;
  call.packed = args.packed;
  call.first_row = taps.begin * kGemmTap;
  call.ahead = ahead;
  call.tap_offsets = plan.tap_offsets.data() + taps.begin;
  call.taps = std::min(taps.end, plan.taps) - taps.begin;
  call.tap_length = kGemmTap;
  call.tail_taps = taps.end - taps.begin - call.taps;
  call.tail_length = plan.tail_length;
  call.first = taps.begin == 0;
  call.last = taps.end == AllTaps(plan);
  call.px_stride = a_rows.stride;
  if (a_rows.scales != nullptr) call.row_scales = a_rows.scales + rows.begin;
  call.pass_taps = plan.pass_taps;
  // One row with registers of 512 bits reads weights as fast as hardware brings them.
  call.asks_ahead = widened == nullptr && (count > 1 || plan.isa < Isa::kAvx512);
  alignas(64) float bias[kMaxTileBlocks * kBlock];
  Int8Columns bytes;
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    const Panel& panel = plan.panels[g];
    BindC(plan, args, rows.begin, panel, bias, a);
    const float* packed = args.packed;
    if (widened != nullptr) {
      WidenPanel(plan, args, panel, widened);
      packed = a->weights = widened;
    }
    if (plan.family == TileFamily::kInt8) {
      const int64_t column = panel.first_block * kBlock;
      bytes.Bind(QuantizationOfA(plan), As<const int32_t>(args.packed + plan.sums) + column,
                 args.b_scales + column, plan.desc.n - column, panel.blocks * kBlock);
      a->start = bytes.start;
      a->epilogue.scale = bytes.scale;
    }
    if (plan.pairs) {
      a->epilogue.scale =
          packed + plan.unscale + (widened == nullptr ? panel.first_block * kBlock : 0);
    }
  };
  const float* a = a_rows.at + rows.begin * a_rows.stride;
  RunPanels(call, bind, EvenRows(a, count, a_rows.stride));
}

// Rows of A as they are times some panels. Where the rows take several times L2, all panels
// multiply what a pass of K reads of some of them before the next pass: it comes from L2 then for
// all panels but the first. Panels that widen do so once.
void RunPlain(const GemmPlan& plan, const GemmArgs& args, const RowsOfA& a_rows, Range rows,
              Range panels, float* widened) {
  const int64_t all = AllTaps(plan), count = rows.end - rows.begin;
  const int64_t bytes = count * plan.k_dwords * static_cast<int64_t>(sizeof(float));
  if (plan.pass_taps == 0 || widened != nullptr || bytes <= 4 * ThisMachine().l2_bytes) {
    return RunTaps(plan, args, a_rows, rows, panels, {0, all}, nullptr, widened);
  }
  const auto weights = [&](int64_t tap) {
    const Panel& first = plan.panels[panels.begin];
    return args.packed + first.offset + tap * kGemmTap * first.blocks * kBlock;
  };
  const int64_t tile = TilePixels(plan.isa, plan.family, 1);
  const int64_t parts = CeilDiv(count, plan.pass_rows);
  for (int64_t part = 0; part < parts; ++part) {
    const Range of_count = PartOfRows(count, tile, part, parts);
    const Range some = {rows.begin + of_count.begin, rows.begin + of_count.end};
    for (int64_t t0 = 0, t1; t0 < all; t0 = t1) {
      t1 = std::min(all, t0 + plan.pass_taps);
      const float* ahead = t1 < all ? weights(t1) : part + 1 < parts ? weights(0) : nullptr;
      RunTaps(plan, args, a_rows, some, panels, {t0, t1}, ahead, nullptr);
    }
  }
}

// Rows of A in pairs times some panels: a panel at a time for all segments, so that it is read
// from memory once.
void RunPairs(const GemmPlan& plan, const GemmArgs& args, const FloatRoom& paired, Range rows,
              Range panels, float* widened) {
  const Scratch scratch(args.scratch);
  PanelCall<Panel> call;
  call.isa = plan.isa;
  call.panels = plan.panels.data();
  call.packed = args.packed;
  FipCall pairs;
  alignas(64) float bias[kMaxTileBlocks * kBlock];
  for (int64_t g = panels.begin; g < panels.end; ++g) {
    call.begin = g;
    call.end = g + 1;
    const Panel& panel = plan.panels[g];
    if (widened != nullptr) {
      WidenPanel(plan, args, panel, widened);
      call.packed = widened;
      call.asks_ahead = false;
    }
    // After a panel that is widened stands what belongs to its own columns.
    const float* columns = widened == nullptr ? args.packed : widened - panel.first_block * kBlock;
    call.ahead = widened == nullptr && g + 1 < panels.end ? call.Weights(g + 1, 0) : nullptr;
    for (int64_t begin = rows.begin; begin < rows.end;) {
      const int64_t segment = begin / paired.segment_rows, first = begin % paired.segment_rows;
      const int64_t end = paired.RowsOf(segment, rows.end).end;
      const auto bind = [&](int64_t, TileArgs* a, PartialSums*) {
        BindC(plan, args, begin, panel, bias, a);
      };
      const float* a = paired.a.Bind(scratch, segment, first, &pairs, &call);
      pairs.unscale = columns + plan.unscale;
      pairs.column_terms = columns + plan.terms;
      RunPanels(call, bind, EvenRows(a, end - begin, kBlock));
      call.ahead = nullptr;  // is coming
      begin = end;
    }
  }
}

// Into how many ranges panels and rows are cut.
struct Cuts {
  int64_t panels = 1, rows = 1;
};

// At most `most` tasks, so that the busiest thread has as few tiles as can be: 12 panels in 8 tasks
// keep one of two threads for 7 of them. Panels are cut before rows, since each weight is read by
// one task then, and among equals there are many tasks: one of the threads may be slowed.
Cuts CutEvenly(int64_t panels, int64_t row_tiles, int64_t most, int64_t threads) {
  Cuts best;
  const int64_t even = CeilDiv(panels * row_tiles, threads);
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (int64_t p = std::min(panels, most); p > 0 && fewest > even; --p) {
    // Of numbers of ranges the least ones that make rows of a range fewer.
    for (int64_t r = 1, size; r <= most / p; r = CeilDiv(row_tiles, size - 1)) {
      size = CeilDiv(row_tiles, r);
      const int64_t busiest = CeilDiv(p * r, threads) * CeilDiv(panels, p) * size;
      if (busiest < fewest) {
        fewest = busiest;
        best = {p, r};
      }
      if (size == 1) break;
    }
  }
  return best;
}

// A task of less than some 20 us is not worth a thread (thread_pool.h): it has about so many
// products, by AMX sixteen times as many, or so much memory of B to wait for.
constexpr int64_t kTaskProducts = 1 << 20, kTaskBytes = 256 << 10;
// Of many threads one that wakes late leaves its part to many others: a fourth is worth it.
int64_t TaskProducts(int64_t threads) { return threads > 8 ? kTaskProducts / 4 : kTaskProducts; }

// Calls run(rows, panels, thread) for parts of the product.
template <typename Fn>
void Split(const GemmPlan& plan, int64_t rows, ThreadPool& pool, Fn&& run) {
  const int64_t panels = static_cast<int64_t>(plan.panels.size()), threads = pool.team_threads();
  // Eight tasks a thread bound what a core that is taken away for a while holds up; more of them
  // read panels again and again.
  constexpr int64_t kTasksPerThread = 8;
  const TileFamily family = InPairs(plan, rows) ? TileFamily::kFip : plan.family;
  const int64_t tile = RowsTogether(plan.isa, family, 1);
  const int64_t products = TaskProducts(threads) * (tile > kMaxTilePixels ? 16 : 1);
  const int64_t work = rows * std::max<int64_t>(1, plan.desc.k) * plan.desc.n / products;
  const int64_t wanted = std::clamp<int64_t>(std::max(work, plan.packed_bytes / kTaskBytes), 1,
                                             kTasksPerThread * threads);
  const Cuts cuts = CutEvenly(panels, CeilDiv(rows, tile), wanted, threads);
  pool.ParallelFor(cuts.panels * cuts.rows, [&](int64_t t, int thread) {
    const int64_t p = t / cuts.rows, r = t % cuts.rows;
    run(PartOfRows(rows, tile, r, cuts.rows),
        Range{panels * p / cuts.panels, panels * (p + 1) / cuts.panels}, thread);
  });
}

// Whether one task both prepares a segment of rows and multiplies it by all of B: the rows are in
// its L1 then, and nobody waits for others' (198x192 by 192x192, two threads: 67 -> 55 us). B is
// read again for each segment, so it has to stay in L2; and segments have to keep all threads busy.
bool PreparesItsRows(const GemmPlan& plan, const FloatRoom& room, int64_t threads) {
  const int64_t busiest = CeilDiv(room.segments, threads) * threads;
  return 8 * busiest <= 9 * room.segments && plan.packed_bytes <= ThisMachine().l2_bytes * 5 / 8;
}

// Few rows: blocks by blocks, of which each task has memory enough to wait for: some 10 us, since
// workers are awake between the layers of a step, and those that sleep delay nobody.
void SplitLowPrecision(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool) {
  constexpr int64_t kStep = 4, kBytes = kTaskBytes / 2;
  const int64_t blocks = CeilDiv(plan.desc.n, kBlock), steps = CeilDiv(blocks, kStep);
  const int64_t wanted =
      std::max(rows * plan.desc.k * plan.desc.n / kTaskProducts, plan.packed_bytes / kBytes);
  const int64_t tasks =
      std::clamp<int64_t>(wanted, 1, std::min<int64_t>(steps, 2 * pool.team_threads()));
  const RowsInDigits in_digits = DigitsOf(plan, args, rows);
  pool.ForRanges(steps, tasks, [&](int64_t begin, int64_t end, int) {
    RunLowPrecision(plan, args, in_digits, rows, {begin * kStep, std::min(blocks, end * kStep)});
  });
}

}  // namespace

int64_t GemmScratchBytes(const GemmPlan& plan, int64_t rows) {
  if (IsLowPrecision(plan.family)) return CopiedRows(plan, rows).book.bytes();
  return FloatRoom(plan, rows).book.bytes();
}

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool) {
  if (rows == 0 || plan.panels.empty()) return;
  if (StaysLowPrecision(plan, rows)) return SplitLowPrecision(plan, args, rows, pool);
  const FloatRoom room(plan, rows);
  const Scratch scratch(args.scratch);
  const auto widened = [&](int thread) {
    return plan.desc.widens ? scratch.Grant(room.widened, thread) : nullptr;
  };
  if (!InPairs(plan, rows)) {
    RowsOfA a = {static_cast<const float*>(args.a), plan.desc.k, nullptr};
    if (IsLowPrecision(plan.family) && ReadsInPlace(plan)) {
      a.stride /= PerDword(plan.family);
    } else if (IsLowPrecision(plan.family)) {
      a = CopyRows(plan, args, rows, pool);
    }
    return Split(plan, rows, pool, [&](Range r, Range panels, int thread) {
      RunPlain(plan, args, a, r, panels, widened(thread));
    });
  }
  const auto prepare = [&](int64_t segment) {
    const Range some = room.RowsOf(segment, rows);
    const float* a = static_cast<const float*>(args.a) + some.begin * plan.desc.k;
    room.a.Copy(plan.isa, scratch, segment, some.end - some.begin,
                [&](int64_t row) { return a + row * plan.desc.k; });
    return some;
  };
  const Range all_panels = {0, static_cast<int64_t>(plan.panels.size())};
  if (PreparesItsRows(plan, room, pool.team_threads())) {
    pool.ParallelFor(room.segments, [&](int64_t segment, int thread) {
      RunPairs(plan, args, room, prepare(segment), all_panels, widened(thread));
    });
    return;
  }
  pool.ParallelFor(room.segments, [&](int64_t segment, int) { prepare(segment); });
  Split(plan, rows, pool, [&](Range r, Range panels, int thread) {
    RunPairs(plan, args, room, r, panels, widened(thread));
  });
}

}  // namespace bd
