#include "cc/core/squeeze_excite/squeeze_excite.h"

#include <algorithm>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/post_ops/post_ops.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into
// tasks of about kTaskNs. A vector of src arrives from the caches after L1, one of the
// weights from memory.
constexpr double kInlineNs = 3000, kTaskNs = 1500, kSrcNs = 1.3, kWeightsNs = 3, kScaleNs = 2;

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
    return StrCat("src ", src.ToString(), " and ", desc.squeezed,
                  " squeezed values: channels and squeezed values must be 1 or more");
  }
  if (!(Size(std::max<int64_t>(1, src.n())) * src.blocks() * desc.squeezed * kBlock * kBlock)
           .fits()) {
    return StrCat("src ", src.ToString(), " and ", desc.squeezed, " squeezed values are too many");
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

// Channels [begin, end) of image n; `unit` counts the splits of all images.
struct Share {
  int64_t unit, n, begin, end;
};

// Runs body(share, thread) for every unit of a round. A thread begins with the same part of
// the units in both, so it meets again the channels and weights that it has in its caches.
template <typename Body>
void ForUnits(const SqueezeExcitePlan& plan, const SqueezeExciteRound& round, ThreadPool& pool,
              Body body) {
  const TensorView& src = plan.desc.src;
  const int64_t units = src.n() * round.splits;
  pool.ForRanges(units, round.tasks, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t split = unit % round.splits;
      const int64_t first = src.blocks() * split / round.splits * 16;
      const int64_t last = src.blocks() * (split + 1) / round.splits * 16;
      body(Share{unit, unit / round.splits, first, std::min(last, src.c())}, thread);
    }
  });
}

}  // namespace

std::string CheckEltwiseOnly(const char* name, const PostOpChain& chain) {
  for (const PostOp& op : chain.entries()) {
    if (op.kind != PostOpKind::kEltwise) {
      return StrCat(name, " \"", ToString(op), "\": only eltwise entries are possible");
    }
  }
  return "";
}

std::string MakeSqueezeExcitePlan(const SqueezeExciteDesc& desc, Isa isa, int threads,
                                  SqueezeExcitePlan* plan) {
  if (std::string error = CheckTensors(desc); !error.empty()) return error;
  for (const std::string& error : {CheckEltwiseOnly("reduce_post_ops", desc.reduce_post_ops),
                                   CheckEltwiseOnly("expand_post_ops", desc.expand_post_ops)}) {
    if (!error.empty()) return error;
  }
  SqueezeExcitePlan p;
  p.desc = desc;
  const int64_t n = desc.src.n(), blocks = desc.src.blocks(), pixels = desc.src.pixels();
  p.kernels = &SqueezeExciteKernelsFor(isa);
  p.isa = isa;
  const double products = desc.squeezed * kWeightsNs;  // of a block: 16 rows or columns
  p.reduce = Cut(n, blocks, pixels * kSrcNs + products);
  p.expand = Cut(n, blocks, products + (desc.scale_src ? pixels * kScaleNs : 0));
  const auto most = [blocks](const SqueezeExciteRound& round) {  // channels of a unit
    return CeilDiv(blocks, round.splits) * kBlock;
  };
  p.mean = p.scratch.Book<float>("mean", most(p.reduce), threads);
  p.sums = p.scratch.Book<float>("sums", n * p.reduce.splits * desc.squeezed);
  p.hidden = p.scratch.Book<float>("hidden", desc.squeezed, threads);
  if (desc.scale_src) p.scales = p.scratch.Book<float>("scales", most(p.expand), threads);
  *plan = p;
  return p.scratch.Check();
}

void RunSqueezeExcite(const SqueezeExcitePlan& plan, const SqueezeExciteBuffers& buffers,
                      ThreadPool& pool) {
  const SqueezeExciteDesc& d = plan.desc;
  const Scratch scratch(buffers.scratch);
  float* sums = scratch.Grant(plan.sums);
  ForUnits(plan, plan.reduce, pool, [&](const Share& share, int thread) {
    ReduceArgs a;
    a.src = buffers.src + d.src.offset(share.n, share.begin / 16, 0);
    a.pixels = d.src.pixels();
    a.channels = share.end - share.begin;
    a.squeezed = d.squeezed;
    a.weights = buffers.reduce_weights + share.begin * d.squeezed;
    a.mean = scratch.Grant(plan.mean, thread);
    a.sums = sums + share.unit * d.squeezed;
    a.expand_weights = share.n == 0 ? buffers.expand_weights + share.begin : nullptr;
    a.expand_stride = d.src.c();
    plan.kernels->reduce(a);
  });
  const BoundPostOps reduce(d.reduce_post_ops, plan.isa, d.squeezed, nullptr, nullptr);
  const BoundPostOps expand(d.expand_post_ops, plan.isa, d.src.c(), nullptr, nullptr);
  const int64_t dst_channels = d.dst.blocks() * d.dst.lanes();
  ForUnits(plan, plan.expand, pool, [&](const Share& share, int thread) {
    ExpandArgs a = {};
    a.sums = sums + share.n * plan.reduce.splits * d.squeezed;
    a.splits = plan.reduce.splits;
    a.squeezed = d.squeezed;
    a.reduce_bias = buffers.reduce_bias;
    a.reduce_program = reduce.program();
    a.hidden = scratch.Grant(plan.hidden, thread);
    a.weights = buffers.expand_weights + share.begin;
    a.weights_stride = d.src.c();
    a.bias = buffers.expand_bias + share.begin;
    a.program = expand.program();
    a.channels = share.end - share.begin;
    a.stored = (share.end == d.src.c() ? dst_channels : share.end) - share.begin;
    a.pixels = d.src.pixels();
    if (d.scale_src) {
      const int64_t offset = d.src.offset(share.n, share.begin / 16, 0);
      a.src = buffers.src + offset;
      a.dst = buffers.dst + offset;
      a.scales = scratch.Grant(plan.scales, thread);
    } else {
      a.scales = buffers.dst + share.n * dst_channels + share.begin;
    }
    plan.kernels->expand(a);
  });
}

}  // namespace bd
