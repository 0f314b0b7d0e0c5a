// A 1x1 convolution of plain tensors as a product of matrices (cc/core/gemm): a row of A is a
// pixel.
#include <limits>
#include <memory>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm.h"

namespace bd {
namespace {

struct ConvGemmPlan {
  GemmPlan gemm;
  ScratchPiece<uint8_t> rows;  // what the product needs for them
};

int64_t RowsOf(const ConvDesc& d) { return d.n() * d.oh() * d.ow(); }

// Of a multiply-add. Against what bringing a row into pairs costs stands what they save on each
// block of columns that it is multiplied by.
double Multiplies(const ConvDesc& d, bool pairs) {
  if (!pairs) return 1;
  const double vectors = CeilDiv(d.ic(), kBlock), blocks = CeilDiv(d.oc(), kBlock);
  return kCpu.fip_multiply +
         (vectors * kCpu.fip_copied_vector + kCpu.fip_copied_pixel) / (vectors * kBlock * blocks);
}

bool InPairs(const ConvDesc& d, Isa isa) {
  if (d.low_precision() || !GainsFromFip(isa) || d.algorithm == ConvAlgorithm::kDirect)
    return false;
  if (d.algorithm == ConvAlgorithm::kFip) return true;
  return d.keeps_weights && Multiplies(d, true) < Multiplies(d, false);
}

// Weights that change stay with `direct_plain`: packing them takes longer than all else.
std::string Applies(const Algorithm&, const ConvDesc& d, Isa) {
  if (!d.src.channels_last() || !d.dst.channels_last() || !d.pointwise() || d.groups != 1 ||
      d.pooled()) {
    return "not a product of matrices";
  }
  if (d.n() > 1 && d.post_ops.ReadsSamples()) return "each sample has an operand of its own";
  return d.changes_weights ? "the weights change" : "";
}

ConvCost Cost(const Algorithm&, const ConvDesc& d, Isa isa, int threads) {
  if (d.algorithm == ConvAlgorithm::kWinograd) return {std::numeric_limits<double>::infinity()};
  return DirectSums(d, Multiplies(d, InPairs(d, isa)), threads);
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const auto own = std::make_shared<ConvGemmPlan>();
  plan->own = own;
  GemmDesc desc;
  desc.k = d.ic();
  desc.n = d.oc();
  desc.pairs = InPairs(d, plan->isa);
  desc.a = d.src.dtype();
  desc.b = d.types.weights;
  desc.a_quantization = d.types.src_quantization;
  desc.tensors = plan->tensors;
  MakeGemmPlan(desc, plan->isa, &own->gemm);  // of any sizes that a tensor has
  // Between passes over K sums are in dst, where a late step may read what was there before.
  plan->epilogue = MakeConvEpilogue(d, /*sums_in_registers=*/true);
  if (plan->epilogue.rest.HasSum()) own->gemm.pass_taps = 0;
  plan->pack_key = {self.name, d.src.dtype(), own->gemm.blocking()};
  plan->packed_bytes = own->gemm.packed_bytes;
  plan->bias.count = 0;  // read as it is
  plan->note = own->gemm.pairs ? " paired" : "";
  if (plan->empty()) return;
  own->rows = plan->scratch.Book<uint8_t>("rows in pairs", GemmScratchBytes(own->gemm, RowsOf(d)));
  plan->blocking = {{"panel_blocks", own->gemm.panels.empty() ? 0 : own->gemm.panels[0].blocks}};
}

void Pack(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  PackGemm(plan.Own<ConvGemmPlan>().gemm, {hwio, plan.desc.oc(), 1}, packed, &pool);
}

void Run(const ConvRun& run, ThreadPool& pool) {
  const ConvDesc& d = run.d;
  const ConvGemmPlan& own = run.plan.Own<ConvGemmPlan>();
  GemmArgs args;
  args.a = run.buffers.src;
  args.packed = run.buffers.packed;
  args.b_scales = run.buffers.weight_scales;
  args.bias = run.bias;
  args.c = run.buffers.dst;
  args.add = run.sum;
  args.add_scale = run.plan.epilogue.sum_scale;
  static_cast<Clamp&>(args) = run.epilogue;
  args.program = run.plain_program;
  args.scratch = run.scratch.Grant(own.rows);
  RunGemm(own.gemm, args, RowsOf(d), pool);
}

}  // namespace

const Algorithm kGemm = {"gemm", 0, true, Applies, Cost, Plan, Pack, Run};

}  // namespace bd
