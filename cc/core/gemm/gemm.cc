// Plans and runs matrix products: gemm.h.
#include "cc/core/gemm/gemm.h"

#include <cstring>
#include <vector>

#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/narrow_pack.h"

namespace bd {
namespace {

// A run of K that strided tiles take as one tap, and the weights of a pass of K, which all rows
// of A share before the next: they stay in L1, where AVX-512 has 32 columns and others 16.
constexpr int64_t kTap = 64;
constexpr int64_t kPassBytes = 24 << 10;

// Fewer rows wait for B; bringing them into pairs would only take longer.
constexpr int64_t kFewestPairedRows = 4;
// Rows of A in pairs that share a scale.
constexpr int64_t kSegmentRows = 64;

bool InPairs(const GemmPlan& plan, int64_t rows) { return plan.pairs && rows >= kFewestPairedRows; }

// A in pairs, a copy of FipRows for each segment of rows.
struct PairedRows {
  PairedRows(int64_t k, int64_t rows) : segments(CeilDiv(rows, kSegmentRows)) {
    a.Book(k, std::min(rows, kSegmentRows), segments, &book);
  }

  int64_t segments;
  ScratchBook book;
  FipRows a;
};

// Rows of A as tiles read them: in dwords, and of bytes with the scales of rows, or null.
struct RowsOfA {
  const float* at;
  int64_t stride;
  const float* scales;
};

// Copies of narrow rows, in whole dwords.
struct CopiedRows {
  CopiedRows(const GemmPlan& plan, int64_t rows) {
    // A scale for each row of floats.
    const bool scaled = plan.family == TileFamily::kInt8 && plan.desc.a == DataType::f32;
    data = book.Book<float>("rows", rows * plan.k_dwords);
    scales = book.Book<float>("scales", scaled ? rows : 0);
  }

  ScratchBook book;
  ScratchPiece<float> data, scales;
};

// Narrow rows that are whole dwords are read where they lie.
bool ReadsInPlace(const GemmPlan& plan, int64_t row_stride) {
  const int64_t per = PerDword(plan.family);
  return plan.desc.a == (plan.family == TileFamily::kBf16 ? DataType::bf16 : DataType::u8) &&
         plan.desc.k % per == 0 && row_stride % per == 0;
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
  pool.ParallelFor(tasks, [&](int64_t t, int) {
    for (int64_t row = rows * t / tasks; row < rows * (t + 1) / tasks; ++row) {
      const void* src = BytesFrom(args.a, row * args.a_row_stride * SizeOf(plan.desc.a));
      copy({plan.desc.a, src, plan.desc.k, data + row * plan.k_dwords,
            scales == nullptr ? nullptr : scales + row});
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

// C and what happens to sums, of one panel from row `row` on. `bias` is room for a last panel's.
void BindC(const GemmPlan& plan, const GemmArgs& args, int64_t row, int64_t g, float* bias,
           TileArgs* a) {
  const NarrowTensors& tensors = plan.desc.tensors;
  const int64_t n = plan.desc.n;
  const Panel& panel = plan.panels[g];
  const int64_t column = panel.first_block * kBlock;
  const int64_t columns = std::min(panel.blocks * kBlock, n - column);
  a->dst = static_cast<float*>(
      BytesFrom(args.c, (row * args.c_row_stride + column) * tensors.dst_bytes));
  a->narrow = IsNarrow(plan.family) ? &tensors : nullptr;
  TileEpilogue& e = a->epilogue;
  e.row_major = 1;
  e.valid_lanes = static_cast<int32_t>(columns - (panel.blocks - 1) * kBlock);
  e.dst_step = args.c_row_stride;
  e.operand_step = e.channels = n;
  e.dst_offset = row * n + column;
  e.channel = column;
  e.sample_channel = args.sample * n;
  e.clamp = args.clamp;
  e.lo = args.lo;
  e.hi = args.hi;
  e.program = args.program;
  if (args.bias != nullptr) {
    e.bias = args.bias + column;
    if (columns < panel.blocks * kBlock) {  // tiles read whole blocks
      std::memset(bias, 0, panel.blocks * kBlock * sizeof(float));
      std::memcpy(bias, args.bias + column, columns * sizeof(float));
      e.bias = bias;
    }
  }
  if (args.add != nullptr) {
    e.acc_in = static_cast<const float*>(
        BytesFrom(args.add, (row * args.add_row_stride + column) * tensors.sum_bytes));
    e.acc_scale = args.add_scale;
    e.acc_step = args.add_row_stride;
    e.acc_block_stride = kBlock;
  }
}

struct Range {
  int64_t begin, end;
};

// Rows of A as they are times some panels.
void RunPlain(const GemmPlan& plan, const GemmArgs& args, const RowsOfA& a_rows, Range rows,
              Range panels) {
  const int64_t count = rows.end - rows.begin;
  PanelCall<Panel> call;
  call.isa = plan.isa;
  call.family = plan.family;
  call.panels = plan.panels.data();
  call.begin = panels.begin;
  call.end = panels.end;
  call.packed = args.packed;
  call.tap_offsets = plan.tap_offsets.data();
  call.taps = plan.taps;
  call.tap_length = kTap;
  call.tail_taps = plan.tail_length > 0;
  call.tail_length = plan.tail_length;
  call.px_stride = a_rows.stride;
  if (a_rows.scales != nullptr) call.pixel_terms = a_rows.scales + rows.begin;
  call.pass_taps = plan.pass_taps;
  // One row with registers of 512 bits reads weights as fast as hardware brings them.
  call.asks_ahead = count > 1 || plan.isa < Isa::kAvx512;
  alignas(64) float bias[kMaxTileBlocks * kBlock];
  Int8Columns bytes;
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    BindC(plan, args, rows.begin, g, bias, a);
    if (plan.family == TileFamily::kInt8) {
      const int64_t column = plan.panels[g].first_block * kBlock;
      bytes.Bind(QuantizationOfA(plan),
                 reinterpret_cast<const int32_t*>(args.packed + plan.sums) + column,
                 args.b_scales + column, plan.desc.n - column, plan.panels[g].blocks * kBlock, a);
    }
    if (plan.pairs) {
      a->fip.unscale = args.packed + plan.unscale + plan.panels[g].first_block * kBlock;
    }
  };
  const float* a = a_rows.at + rows.begin * a_rows.stride;
  RunPanels(call, bind, EvenRows(a, count, a_rows.stride));
}

// Rows of A in pairs times some panels: a panel at a time for all segments, so that it is read
// from memory once.
void RunPairs(const GemmPlan& plan, const GemmArgs& args, const PairedRows& paired, Range rows,
              Range panels) {
  const Scratch scratch(args.scratch);
  PanelCall<Panel> call;
  call.isa = plan.isa;
  call.panels = plan.panels.data();
  call.packed = args.packed;
  alignas(64) float bias[kMaxTileBlocks * kBlock], unscale[kMaxTileBlocks * kBlock];
  for (int64_t g = panels.begin; g < panels.end; ++g) {
    call.begin = g;
    call.end = g + 1;
    call.behind = g + 1 < panels.end ? call.Weights(g + 1, 0) : nullptr;
    for (int64_t begin = rows.begin; begin < rows.end;) {
      const int64_t segment = begin / kSegmentRows, first = begin % kSegmentRows;
      const int64_t end = std::min(rows.end, (segment + 1) * kSegmentRows);
      const float factor = paired.a.Factor(scratch, segment);
      const auto bind = [&](int64_t, TileArgs* a, PartialSums*) {
        BindC(plan, args, begin, g, bias, a);
        const int64_t column = plan.panels[g].first_block * kBlock;
        for (int64_t i = 0; i < plan.panels[g].blocks * kBlock; ++i) {
          unscale[i] = args.packed[plan.unscale + column + i] * factor;
        }
        a->fip.unscale = unscale;
        a->fip.channel_terms = args.packed + plan.terms + column;
      };
      const float* a = paired.a.Bind(scratch, segment, first, &call);
      RunPanels(call, bind, EvenRows(a, end - begin, kBlock));
      call.behind = nullptr;  // is coming
      begin = end;
    }
  }
}

// Calls run(rows, panels) for parts of the product.
template <typename Fn>
void Split(const GemmPlan& plan, int64_t rows, ThreadPool& pool, Fn&& run) {
  const int64_t panels = static_cast<int64_t>(plan.panels.size()), threads = pool.num_threads();
  // A task of less than some 20 us is not worth a thread (thread_pool.h).
  constexpr int64_t kTaskProducts = 1 << 20;
  const int64_t work = rows * std::max<int64_t>(1, plan.desc.k) * plan.desc.n;
  const int64_t wanted = std::clamp<int64_t>(work / kTaskProducts, 1, 4 * threads);
  // Ranges of panels first, since each weight is read by one task then; rows where those are few.
  const TileFamily family = InPairs(plan, rows) ? TileFamily::kFip : plan.family;
  const int64_t widest = TilePixels(plan.isa, family, 1);
  const int64_t by_panels = std::min(panels, wanted);
  const int64_t by_rows = std::min(CeilDiv(rows, widest), wanted / by_panels);
  pool.ParallelFor(by_panels * by_rows, [&](int64_t t, int) {
    const int64_t p = t / by_rows, r = t % by_rows;
    run(Range{rows * r / by_rows, rows * (r + 1) / by_rows},
        Range{panels * p / by_panels, panels * (p + 1) / by_panels});
  });
}

// What tiles multiply; kBlocked: there are none.
TileFamily FamilyOf(const GemmDesc& d) {
  const auto is_float = [](DataType t) { return t == DataType::f32 || t == DataType::bf16; };
  if (d.a == DataType::f32 && d.b == DataType::f32) return TileFamily::kStrided;
  if (is_float(d.a) && is_float(d.b)) return TileFamily::kBf16;
  const bool rows = d.a == DataType::u8 || d.a == DataType::s8 || d.a == DataType::f32;
  return d.b == DataType::s8 && rows ? TileFamily::kInt8 : TileFamily::kBlocked;
}

std::string CheckTypes(const GemmDesc& d) {
  const TileFamily family = FamilyOf(d);
  const std::string product =
      std::string(" product of ") + DataTypeName(d.a) + " and " + DataTypeName(d.b);
  if (family == TileFamily::kBlocked) return "there is no" + product + "; convert one before";
  for (DataType type : {d.tensors.dst.dtype, d.tensors.sum.dtype}) {
    if (type == DataType::f32) continue;
    if (IsNarrow(family) && (type == DataType::bf16 || type == DataType::u8)) continue;
    return "a" + product + " neither stores nor adds " + DataTypeName(type);
  }
  if (family == TileFamily::kInt8 && d.k > kMostInt8Products) {
    return "sums of " + std::to_string(d.k) + " products of bytes may be no int32; at most " +
           std::to_string(kMostInt8Products) + " are";
  }
  return "";
}

}  // namespace

std::string MakeGemmPlan(const GemmDesc& desc, Isa isa, GemmPlan* plan) {
  if (desc.k < 0 || desc.n < 0) {
    return "a product of " + std::to_string(desc.k) + " by " + std::to_string(desc.n) +
           " has a negative size";
  }
  if (desc.a_k_stride != 1) {
    return "neighbours of a row of A must be 1 float apart, not " +
           std::to_string(desc.a_k_stride) + "; transpose A before";
  }
  if (std::string error = CheckTypes(desc); !error.empty()) return error;
  *plan = GemmPlan();
  plan->desc = desc;
  plan->desc.tensors.dst_bytes = SizeOf(desc.tensors.dst.dtype);
  plan->desc.tensors.sum_bytes = SizeOf(desc.tensors.sum.dtype);
  plan->isa = isa;
  plan->family = FamilyOf(desc);
  const bool narrow = IsNarrow(plan->family);
  const int64_t k = plan->k_dwords = CeilDiv(desc.k, PerDword(plan->family));
  const int64_t blocks = CeilDiv(desc.n, kBlock), widest = GemmKernelsFor(isa).tile_blocks;
  int64_t offset = 0;
  for (int64_t b = 0; b < blocks; b += widest) {
    const int64_t of_panel = std::min(widest, blocks - b);
    plan->panels.push_back({b, of_panel, offset});
    offset += k * of_panel * kBlock;
  }
  plan->pairs = desc.pairs && !narrow && GainsFromFip(isa);
  if (plan->pairs) {
    plan->unscale = offset;
    plan->terms = offset + blocks * kBlock;
    offset += 2 * blocks * kBlock;
  }
  if (plan->family == TileFamily::kInt8) {
    plan->sums = offset;
    offset += blocks * kBlock;
  }
  plan->packed_bytes = offset * static_cast<int64_t>(sizeof(float));
  plan->taps = k / kTap;
  plan->tail_length = k % kTap;
  for (int64_t t = 0; t * kTap < k; ++t) plan->tap_offsets.push_back(t * kTap);
  const int64_t all = static_cast<int64_t>(plan->tap_offsets.size());
  const int64_t most = kPassBytes / (kTap * widest * kBlock * static_cast<int64_t>(sizeof(float)));
  if (all > 0 && !narrow) plan->pass_taps = CeilDiv(all, CeilDiv(all, std::max<int64_t>(1, most)));
  return "";
}

int64_t GemmScratchBytes(const GemmPlan& plan, int64_t rows) {
  if (IsNarrow(plan.family)) return static_cast<int64_t>(CopiedRows(plan, rows).book.bytes());
  return InPairs(plan, rows) ? static_cast<int64_t>(PairedRows(plan.desc.k, rows).book.bytes()) : 0;
}

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool) {
  if (rows == 0 || plan.panels.empty()) return;
  if (!InPairs(plan, rows)) {
    RowsOfA a = {static_cast<const float*>(args.a), args.a_row_stride, nullptr};
    if (IsNarrow(plan.family) && ReadsInPlace(plan, args.a_row_stride)) {
      a.stride /= PerDword(plan.family);
    } else if (IsNarrow(plan.family)) {
      a = CopyRows(plan, args, rows, pool);
    }
    return Split(plan, rows, pool,
                 [&](Range r, Range panels) { RunPlain(plan, args, a, r, panels); });
  }
  const PairedRows paired(plan.desc.k, rows);
  const Scratch scratch(args.scratch);
  pool.ParallelFor(paired.segments, [&](int64_t s, int) {
    const float* a = static_cast<const float*>(args.a) + s * kSegmentRows * args.a_row_stride;
    paired.a.Pack(plan.isa, scratch, s, std::min(kSegmentRows, rows - s * kSegmentRows),
                  [&](int64_t row) { return a + row * args.a_row_stride; });
  });
  Split(plan, rows, pool, [&](Range r, Range panels) { RunPairs(plan, args, paired, r, panels); });
}

}  // namespace bd
