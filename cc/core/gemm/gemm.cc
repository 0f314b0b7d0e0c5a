// Plans and runs matrix products: gemm.h.
#include "cc/core/gemm/gemm.h"

#include <cstring>
#include <vector>

#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/fip.h"

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

// C and what happens to sums, of one panel from row `row` on. `bias` is room for a last panel's.
void BindC(const GemmPlan& plan, const GemmArgs& args, int64_t row, int64_t g, float* bias,
           TileArgs* a) {
  const int64_t n = plan.desc.n;
  const Panel& panel = plan.panels[g];
  const int64_t column = panel.first_block * kBlock;
  const int64_t columns = std::min(panel.blocks * kBlock, n - column);
  a->dst = args.c + row * args.c_row_stride + column;
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
    e.acc_in = args.add + row * args.add_row_stride + column;
    e.acc_scale = args.add_scale;
    e.acc_step = args.add_row_stride;
    e.acc_block_stride = kBlock;
  }
}

struct Range {
  int64_t begin, end;
};

// Rows of A as they are times some panels.
void RunPlain(const GemmPlan& plan, const GemmArgs& args, Range rows, Range panels) {
  const int64_t count = rows.end - rows.begin;
  PanelCall<Panel> call;
  call.isa = plan.isa;
  call.family = TileFamily::kStrided;
  call.panels = plan.panels.data();
  call.begin = panels.begin;
  call.end = panels.end;
  call.packed = args.packed;
  call.tap_offsets = plan.tap_offsets.data();
  call.taps = plan.taps;
  call.tap_length = kTap;
  call.tail_taps = plan.tail_length > 0;
  call.tail_length = plan.tail_length;
  call.px_stride = args.a_row_stride;
  call.pass_taps = plan.pass_taps;
  // One row with registers of 512 bits reads weights as fast as hardware brings them.
  call.asks_ahead = count > 1 || plan.isa < Isa::kAvx512;
  alignas(64) float bias[kMaxTileBlocks * kBlock];
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    BindC(plan, args, rows.begin, g, bias, a);
    if (plan.pairs) {
      a->fip.unscale = args.packed + plan.unscale + plan.panels[g].first_block * kBlock;
    }
  };
  const float* a = args.a + rows.begin * args.a_row_stride;
  RunPanels(call, bind, EvenRows(a, count, args.a_row_stride));
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
  const TileFamily family = InPairs(plan, rows) ? TileFamily::kFip : TileFamily::kStrided;
  const int64_t widest = TilePixels(plan.isa, family, 1);
  const int64_t by_panels = std::min(panels, wanted);
  const int64_t by_rows = std::min(CeilDiv(rows, widest), wanted / by_panels);
  pool.ParallelFor(by_panels * by_rows, [&](int64_t t, int) {
    const int64_t p = t / by_rows, r = t % by_rows;
    run(Range{rows * r / by_rows, rows * (r + 1) / by_rows},
        Range{panels * p / by_panels, panels * (p + 1) / by_panels});
  });
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
  *plan = GemmPlan();
  plan->desc = desc;
  plan->isa = isa;
  const int64_t blocks = CeilDiv(desc.n, kBlock), widest = GemmKernelsFor(isa).tile_blocks;
  int64_t offset = 0;
  for (int64_t b = 0; b < blocks; b += widest) {
    const int64_t of_panel = std::min(widest, blocks - b);
    plan->panels.push_back({b, of_panel, offset});
    offset += desc.k * of_panel * kBlock;
  }
  plan->pairs = desc.pairs && GainsFromFip(isa);
  if (plan->pairs) {
    plan->unscale = offset;
    plan->terms = offset + blocks * kBlock;
    offset += 2 * blocks * kBlock;
  }
  plan->packed_bytes = offset * static_cast<int64_t>(sizeof(float));
  plan->taps = desc.k / kTap;
  plan->tail_length = desc.k % kTap;
  for (int64_t t = 0; t * kTap < desc.k; ++t) plan->tap_offsets.push_back(t * kTap);
  const int64_t all = static_cast<int64_t>(plan->tap_offsets.size());
  const int64_t most = kPassBytes / (kTap * widest * kBlock * static_cast<int64_t>(sizeof(float)));
  if (all > 0) plan->pass_taps = CeilDiv(all, CeilDiv(all, std::max<int64_t>(1, most)));
  return "";
}

int64_t GemmScratchBytes(const GemmPlan& plan, int64_t rows) {
  return InPairs(plan, rows) ? static_cast<int64_t>(PairedRows(plan.desc.k, rows).book.bytes()) : 0;
}

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool) {
  if (rows == 0 || plan.panels.empty()) return;
  if (!InPairs(plan, rows)) {
    return Split(plan, rows, pool, [&](Range r, Range panels) { RunPlain(plan, args, r, panels); });
  }
  const PairedRows paired(plan.desc.k, rows);
  const Scratch scratch(args.scratch);
  pool.ParallelFor(paired.segments, [&](int64_t s, int) {
    const float* a = args.a + s * kSegmentRows * args.a_row_stride;
    paired.a.Pack(plan.isa, scratch, s, std::min(kSegmentRows, rows - s * kSegmentRows),
                  [&](int64_t row) { return a + row * args.a_row_stride; });
  });
  Split(plan, rows, pool, [&](Range r, Range panels) { RunPairs(plan, args, paired, r, panels); });
}

}  // namespace bd
