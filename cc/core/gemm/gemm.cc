// Plans and runs matrix products: gemm.h.
#include "cc/core/gemm/gemm.h"

#include <cstring>

namespace bd {
namespace {

// A run of K that strided tiles take as one tap, and the weights of a pass of K, which all rows
// of A share before the next: they stay in L1, where AVX-512 has 32 columns and others 16.
constexpr int64_t kTap = 64;
constexpr int64_t kPassBytes = 24 << 10;

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
  plan->packed_bytes = offset * static_cast<int64_t>(sizeof(float));
  plan->taps = desc.k / kTap;
  plan->tail_length = desc.k % kTap;
  for (int64_t t = 0; t * kTap < desc.k; ++t) plan->tap_offsets.push_back(t * kTap);
  const int64_t all = static_cast<int64_t>(plan->tap_offsets.size());
  const int64_t most = kPassBytes / (kTap * widest * kBlock * static_cast<int64_t>(sizeof(float)));
  if (all > 0) plan->pass_taps = CeilDiv(all, CeilDiv(all, std::max<int64_t>(1, most)));
  return "";
}

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t row_begin, int64_t row_end,
             int64_t panel_begin, int64_t panel_end) {
  const int64_t rows = row_end - row_begin, n = plan.desc.n;
  if (rows <= 0) return;
  PanelCall<Panel> call;
  call.isa = plan.isa;
  call.family = TileFamily::kStrided;
  call.panels = plan.panels.data();
  call.begin = panel_begin;
  call.end = panel_end;
  call.packed = args.packed;
  call.tap_offsets = plan.tap_offsets.data();
  call.taps = plan.taps;
  call.tap_length = kTap;
  call.tail_taps = plan.tail_length > 0;
  call.tail_length = plan.tail_length;
  call.px_stride = args.a_row_stride;
  call.pass_taps = plan.pass_taps;
  // One row with registers of 512 bits reads weights as fast as hardware brings them.
  call.asks_ahead = rows > 1 || plan.isa < Isa::kAvx512;
  alignas(64) float bias[kMaxTileBlocks * kBlock];
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    const Panel& panel = plan.panels[g];
    const int64_t column = panel.first_block * kBlock;
    const int64_t columns = std::min(panel.blocks * kBlock, n - column);
    a->dst = args.c + row_begin * args.c_row_stride + column;
    TileEpilogue& e = a->epilogue;
    e.row_major = 1;
    e.valid_lanes = static_cast<int32_t>(columns - (panel.blocks - 1) * kBlock);
    e.dst_step = args.c_row_stride;
    e.operand_step = e.channels = n;
    e.dst_offset = row_begin * n + column;
    e.channel = column;
    e.sample_channel = args.sample * n;
    e.clamp = args.clamp;
    e.lo = args.lo;
    e.hi = args.hi;
    e.program = args.program;
    if (args.bias != nullptr) {
      e.bias = args.bias + column;
      if (columns < panel.blocks * kBlock) {  // tiles read whole blocks
        std::memset(bias, 0, sizeof(bias));
        std::memcpy(bias, args.bias + column, columns * sizeof(float));
        e.bias = bias;
      }
    }
    if (args.add != nullptr) {
      e.acc_in = args.add + row_begin * args.add_row_stride + column;
      e.acc_scale = args.add_scale;
      e.acc_step = args.add_row_stride;
      e.acc_block_stride = kBlock;
    }
  };
  RunPanels(call, bind, EvenRows(args.a + row_begin * args.a_row_stride, rows, args.a_row_stride));
}

void RunGemm(const GemmPlan& plan, const GemmArgs& args, int64_t rows, ThreadPool& pool) {
  const int64_t panels = static_cast<int64_t>(plan.panels.size()), threads = pool.num_threads();
  if (rows == 0 || panels == 0) return;
  // A task of less than some 20 us is not worth a thread (thread_pool.h).
  constexpr int64_t kTaskProducts = 1 << 20;
  const int64_t work = rows * std::max<int64_t>(1, plan.desc.k) * plan.desc.n;
  const int64_t wanted = std::clamp<int64_t>(work / kTaskProducts, 1, 4 * threads);
  // Ranges of panels first, since each weight is read by one task then; rows where those are few.
  const int64_t widest = TilePixels(plan.isa, TileFamily::kStrided, 1);
  const int64_t by_panels = std::min(panels, wanted);
  const int64_t by_rows = std::min(CeilDiv(rows, widest), wanted / by_panels);
  pool.ParallelFor(by_panels * by_rows, [&](int64_t t, int) {
    const int64_t p = t / by_rows, r = t % by_rows;
    RunGemm(plan, args, rows * r / by_rows, rows * (r + 1) / by_rows, panels * p / by_panels,
            panels * (p + 1) / by_panels);
  });
}

}  // namespace bd
