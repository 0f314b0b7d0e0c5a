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

std::string CheckTensors(const SqueezeExciteDesc& desc) {
  const TensorView &src = desc.src, &dst = desc.dst;
  if (src.c() < 1 || desc.squeezed < 1) {
    return "src " + src.ToString() + " and " + std::to_string(desc.squeezed) +
           " squeezed values: channels and squeezed values must be 1 or more";
  }
  if (src.dtype() != DataType::f32 || !src.blocked() || src.lanes() != 16 || !src.dense()) {
    return "squeeze-and-excitation reads dense float32 in blocks of 16 channels, got " +
           src.ToString();
  }
  if (desc.scale_src) {
    return dst == src ? ""
                      : "a scaled src is as src, " + src.ToString() + ", not " + dst.ToString();
  }
  if (dst.dtype() == DataType::f32 && (!dst.blocked() || dst.lanes() == 16) && dst.dense() &&
      dst.n() == src.n() && dst.c() == src.c() && dst.pixels() == 1) {
    return "";
  }
  return "dst is " + dst.ToString() + ", which is no scale for each channel of " + src.ToString();
}

}  // namespace

std::string MakeSqueezeExcitePlan(const SqueezeExciteDesc& desc, Isa isa, int threads,
                                  SqueezeExcitePlan* plan) {
  const std::string wrong = CheckTensors(desc);
  if (!wrong.empty()) return wrong;
  for (const std::string& error : {Complaint("reduce_post_ops", desc.reduce_post_ops),
                                   Complaint("expand_post_ops", desc.expand_post_ops)}) {
    if (!error.empty()) return error;
  }
  SqueezeExcitePlan p;
  p.desc = desc;
  const int64_t n = desc.src.n(), blocks = desc.src.blocks(), pixels = desc.src.pixels();
  p.kernels = &SqueezeExciteKernelsFor(isa);
  const double products = desc.squeezed * kWeightsNs;  // of a block: 16 rows or columns
  p.reduce = Cut(n, blocks, pixels * kSrcNs + products);
  p.expand = Cut(n, blocks, products + (desc.scale_src ? pixels * kScaleNs : 0));
  const auto most = [blocks](const SqueezeExciteRound& round) {  // channels of a unit
    return (blocks + round.splits - 1) / round.splits * 16;
  };
  p.mean = p.scratch.Book<float>("mean", most(p.reduce), threads);
  p.sums = p.scratch.Book<float>("sums", n * p.reduce.splits * desc.squeezed);
  p.hidden = p.scratch.Book<float>("hidden", desc.squeezed, threads);
  if (desc.scale_src) p.scales = p.scratch.Book<float>("scales", most(p.expand), threads);
  *plan = p;
  return "";
}

}  // namespace bd
