#include <algorithm>

#include "cc/core/squeeze_excite/squeeze_excite.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into
// tasks of about kTaskNs. A vector of src arrives from the caches behind L1, one of the
// weights from memory.
constexpr double kInlineNs = 3000, kTaskNs = 1500, kSrcNs = 1.3, kWeightsNs = 3, kScaleNs = 2;

std::string Complaint(const char* name, const PostOpChain& chain) {
  for (const PostOp& op : chain.entries()) {
    if (op.kind != PostOpKind::kEltwise) {
      return std::string(name) + " \"" + ToString(op) + "\": only eltwise entries are possible";
    }
  }
  return "";
}

// A power of two of splits: the same thread is then likely to meet the same channels
// in both rounds, and with them the weights that it asked for.
SqueezeExciteRound Cut(int64_t n, int64_t blocks, double block_ns) {
  SqueezeExciteRound round;
  const double image_ns = blocks * block_ns;
  if (n * image_ns < kInlineNs) {
    round.tasks = std::min<int64_t>(1, n);
    return round;
  }
  while (round.splits * 2 <= blocks && round.splits * 2 * kTaskNs <= image_ns) round.splits *= 2;
  round.tasks = std::clamp<int64_t>(n * image_ns / kTaskNs, 1, n * round.splits);
  return round;
}

}  // namespace

std::string MakeSqueezeExcitePlan(const SqueezeExciteDesc& desc, Isa isa, int threads,
                                  SqueezeExcitePlan* plan) {
  if (desc.n < 0 || desc.pixels < 0 || desc.channels < 1 || desc.squeezed < 1) {
    return "a batch of " + std::to_string(desc.n) + ", " + std::to_string(desc.pixels) +
           " pixels, " + std::to_string(desc.channels) + " channels, " +
           std::to_string(desc.squeezed) + " squeezed ones: sizes must be positive";
  }
  for (const std::string& error : {Complaint("reduce_post_ops", desc.reduce_post_ops),
                                   Complaint("expand_post_ops", desc.expand_post_ops)}) {
    if (!error.empty()) return error;
  }
  if (desc.scale_src && desc.plain_dst) return "a scaled src is as src, not [N, C]";
  SqueezeExcitePlan p;
  p.desc = desc;
  p.blocks = (desc.channels + 15) / 16;
  p.kernels = &SqueezeExciteKernelsFor(isa);
  const double products = desc.squeezed * kWeightsNs;  // of a block: 16 rows or columns
  p.reduce = Cut(desc.n, p.blocks, desc.pixels * kSrcNs + products);
  p.expand = Cut(desc.n, p.blocks, products + (desc.scale_src ? desc.pixels * kScaleNs : 0));
  const auto most = [&p](const SqueezeExciteRound& round) {  // channels of a unit
    return (p.blocks + round.splits - 1) / round.splits * 16;
  };
  p.mean = p.scratch.Book<float>("mean", most(p.reduce), threads);
  p.sums = p.scratch.Book<float>("sums", desc.n * p.reduce.splits * desc.squeezed);
  p.hidden = p.scratch.Book<float>("hidden", desc.squeezed, threads);
  if (desc.scale_src) p.scales = p.scratch.Book<float>("scales", most(p.expand), threads);
  *plan = p;
  return "";
}

}  // namespace bd
