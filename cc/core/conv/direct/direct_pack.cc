// HWIO weights -> the order the kernels read them in; channel tails are zero.
//
//   blocked source  [group][icb][kh][kw][ic in block][block of group][16]
//   NHWC source     [group][kh][kw][ic][block of group][16]
//   dot             [icb][kh][kw][oc][16 lanes of ic]
//
// Of low precision ic counts dwords (cc/core/gemm/low_precision_pack.h), of an NHWC source those of
// a tap, kw and ic in one, where the last number of an odd tap of bfloat16 lies after all taps;
// after bytes lie their sums, an int32 an output channel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cc/core/conv/direct/direct.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

constexpr int64_t kTaskFloats = 32 << 10;  // packed weights worth a task

// Weight of output channel o at source channel c (of all ic), zero where o's
// group does not see c.
struct Hwio {
  const float* data;
  int64_t ic_group, oc_group, oc;

  float At(int64_t tap, int64_t c, int64_t o) const {
    if (o >= oc || c / ic_group != o / oc_group) return 0.f;
    return data[(tap * ic_group + c % ic_group) * oc + o];
  }
};

// Packs rows of B, a source channel and tap each, of one group.
class GroupPacker {
 public:
  GroupPacker(const ConvPlan& plan, const Hwio& w, const OutputGroup& g, float* out)
      : plan_(plan), d_(plan.run_desc), w_(w), g_(g), lanes_(g.blocks * kBlock), out_(out) {}

  // Source blocks [begin, end) of those that reach the group, of which block `first` lies at `out`;
  // of an NHWC source all taps of a block's channels.
  void Run(int64_t begin, int64_t end, int64_t first) const {
    const int64_t taps = d_.kh() * d_.kw();
    const bool plain = !plan_.Own<DirectPlan>().blocked();
    for (int64_t b = begin; b < end; ++b) {
      const int64_t c0 = b * kBlock, count = std::min(d_.ic() - c0, kBlock);
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t row = plain ? t * d_.ic() + c0 : (b - first) * kBlock * taps + t * count;
        // The rows that are read next, of the next tap or of the next block.
        const bool last = t + 1 == taps;
        const int64_t next = last ? c0 + kBlock : (t + 1) * d_.ic() + c0;
        const bool fetches = d_.groups == 1 && !(last && b + 1 == end);
        for (int64_t c = 0; c < count; ++c) {
          if (fetches) Fetch(next + c);
          PutRow(t, c0 + c, out_ + (row + c) * lanes_);
        }
      }
    }
  }

 private:
  // The rows of a panel are too far apart for hardware prefetchers.
  void Fetch(int64_t row) const {
    const float* const from = w_.data + row * d_.oc() + g_.first_block * kBlock;
    for (int64_t i = 0; i < lanes_; i += kBlock) __builtin_prefetch(from + i);
  }

  void PutRow(int64_t tap, int64_t c, float* out) const {
    const int64_t o0 = g_.first_block * kBlock;
    if (d_.groups > 1) {
      for (int64_t i = 0; i < lanes_; ++i) out[i] = w_.At(tap, c, o0 + i);
      return;
    }
    const float* from = w_.data + (tap * d_.ic() + c) * d_.oc() + o0;
    for (int64_t left = d_.oc() - o0, i = 0; i < lanes_; i += kBlock, left -= kBlock) {
      if (left >= kBlock) {
        std::memcpy(out + i, from + i, kBlock * sizeof(float));  // four vectors, inline
      } else {
        std::fill(std::copy_n(from + i, std::max<int64_t>(0, left), out + i), out + i + kBlock,
                  0.f);
      }
    }
  }

  const ConvPlan& plan_;
  const ConvDesc& d_;
  const Hwio& w_;
  const OutputGroup& g_;
  const int64_t lanes_;
  float* const out_;
};

// A source block of a dot, whose lanes are source channels.
void PackLanes(const ConvDesc& d, const float* hwio, int64_t b, float* out) {
  for (int64_t t = 0; t < d.kh() * d.kw(); ++t) {
    for (int64_t o = 0; o < d.oc(); ++o) {
      for (int64_t i = 0; i < kBlock; ++i) {
        const int64_t c = b * kBlock + i;
        *out++ = c < d.ic() ? hwio[(t * d.ic() + c) * d.oc() + o] : 0.f;
      }
    }
  }
}

// Of low precision: the same rows in dwords.
void PackLowPrecisionGroup(const ConvPlan& plan, const float* hwio, const OutputGroup& g,
                           float* packed) {
  const DirectPlan& p = plan.Own<DirectPlan>();
  const ConvDesc& d = plan.run_desc;
  const int64_t taps = d.kh() * d.kw(), lanes = g.blocks * kBlock, o0 = g.first_block * kBlock;
  const int64_t ic_group = d.ic() / d.groups, oc_group = d.oc() / d.groups;
  int32_t* sums = nullptr;
  if (IsBytes(p.family)) {
    sums = As<int32_t>(packed + p.groups.packed_floats) + o0;
    std::fill_n(sums, lanes, 0);
  }
  // `count` rows of B from channel c0 of tap t on, after so many dwords.
  const auto pack = [&](int64_t t0, int64_t c0, int64_t channels, int64_t count, int64_t dwords) {
    const auto index_of = [&](int64_t k, int64_t lane) -> int64_t {
      const int64_t t = t0 + (c0 + k) / channels, c = (c0 + k) % channels, o = o0 + lane;
      if (o >= d.oc() || c >= d.ic()) return -1;
      if (d.groups == 1) return (t * d.ic() + c) * d.oc() + o;
      if (c / ic_group != o / oc_group) return -1;
      return (t * ic_group + c % ic_group) * d.oc() + o;
    };
    PackLowPrecision(p.family, d.types.weights, hwio, count, lanes, index_of,
                     packed + g.offset + dwords * lanes, sums);
  };
  if (!p.blocked()) {
    const int64_t columns = p.tap_units / p.channels, joined = taps / columns;
    const int64_t last = p.odd_taps() ? 1 : 0;
    for (int64_t t = 0; t < joined; ++t) {
      pack(t * columns, 0, p.channels, p.tap_units - last, t * p.tap_length);
      if (last > 0) {
        pack(t * columns, p.tap_units - 1, p.channels, 1, joined * p.tap_length + t);
      }
    }
    return;
  }
  for (int64_t b = g.icb_begin; b < g.icb_end; ++b) {
    const int64_t c0 = b * kBlock, count = std::min(d.ic() - c0, kBlock);
    for (int64_t t = 0; t < taps; ++t) {
      pack(t, c0, d.ic(), count, (b - g.icb_begin) * p.pixel * taps + t * p.Dwords(count));
    }
  }
}

}  // namespace

void PackPanel(const ConvRun& run, const OutputGroup& group, int64_t b0, int64_t b1, float* out) {
  const ConvDesc& d = run.d;
  const Hwio w{run.buffers.plain, d.ic(), d.oc(), d.oc()};
  GroupPacker(run.plan, w, group, out).Run(b0, b1, b0);
}

void PackDirect(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const DirectPlan& p = plan.Own<DirectPlan>();
  const ConvDesc& d = plan.run_desc;
  if (p.packs_panels) return;  // done in the run
  if (p.low_precision()) {
    return pool.ParallelFor(p.groups.size(), [&](int64_t g, int) {
      PackLowPrecisionGroup(plan, hwio, p.groups[g], packed);
    });
  }
  if (p.variant == kDotLanes) {
    const int64_t block = p.groups.packed_floats / plan.icb;
    for (int64_t b = 0; b < plan.icb; ++b) PackLanes(d, hwio, b, packed + b * block);
    return;
  }
  const Hwio w{hwio, d.ic() / d.groups, d.oc() / d.groups, d.oc()};
  const int64_t groups = p.groups.size();
  const int64_t splits =  // of the source blocks of a group
      std::clamp<int64_t>(p.groups.packed_floats / std::max<int64_t>(1, groups) / kTaskFloats, 1,
                          std::max<int64_t>(1, plan.icb));
  pool.ParallelFor(groups * splits, [&](int64_t task, int) {
    const OutputGroup& g = p.groups[task / splits];
    const int64_t split = task % splits, blocks = g.icb_end - g.icb_begin;
    GroupPacker(plan, w, g, packed + g.offset)
        .Run(g.icb_begin + blocks * split / splits, g.icb_begin + blocks * (split + 1) / splits,
             g.icb_begin);
  });
  if (!p.fip()) return;
  float* const trailer = packed + p.groups.packed_floats;
  std::fill_n(trailer, kBlock, 0.f);
  const int64_t chunks = CeilDiv(plan.icb, p.icb_chunk), taps = d.kh() * d.kw();
  pool.ParallelFor(groups * chunks, [&](int64_t task, int) {
    const OutputGroup& g = p.groups[task / chunks];
    const int64_t chunk = task % chunks, lanes = g.blocks * kBlock;
    const int64_t first = chunk * p.icb_chunk * kBlock;
    const int64_t channels = std::min(d.ic() - first, p.icb_chunk * kBlock);
    float* const unscale = trailer + p.pairs_floats(plan.ocb, chunk) + g.first_block * kBlock;
    PackFip(plan.isa, channels * taps, channels / kBlock * taps, lanes,
            packed + g.offset + first * taps * lanes, unscale, unscale + plan.ocb * kBlock);
  });
}

int DirectExponent(const ConvPlan& plan, const float* src) {
  if (!plan.Own<DirectPlan>().fip()) return 0;
  // Of the first image; a few vectors tell a mean to a factor of 4.
  constexpr int64_t kSamples = 256;
  const int64_t pixels = plan.run_desc.src.pixels(), vectors = plan.icb * pixels;
  const int64_t step = CeilDiv(vectors, kSamples);
  double squares = 0;
  int64_t count = 0;
  for (int64_t v = 0; v < vectors; v += step, count += kBlock) {
    const float* x =
        src + plan.src_block(v / pixels) * plan.run_desc.src.block_stride() + v % pixels * kBlock;
    for (int64_t i = 0; i < kBlock; ++i) squares += double{x[i]} * x[i];
  }
  return FipExponentOf(squares, count);
}

void SuitDirect(const ConvPlan& plan, int exponent, float* packed, ThreadPool& pool) {
  const DirectPlan& p = plan.Own<DirectPlan>();
  const float up = std::ldexp(1.f, exponent);
  const auto scale = FipKernelsFor(plan.isa).scale;
  const int64_t groups = p.groups.size();
  pool.ParallelFor(groups, [&](int64_t g, int) {
    const int64_t end = g + 1 < groups ? p.groups[g + 1].offset : p.groups.packed_floats;
    float* const panel = packed + p.groups[g].offset;
    scale(panel, up, end - p.groups[g].offset, panel);
  });
  float* terms = packed + p.groups.packed_floats;
  *terms = static_cast<float>(exponent);
  terms += kBlock;
  for (int64_t chunk = 0; chunk < CeilDiv(plan.icb, p.icb_chunk); ++chunk) {
    const int64_t lanes = plan.ocb * kBlock;
    scale(terms, 1 / up, lanes, terms);
    scale(terms + lanes, up * up, lanes, terms + lanes);
    terms += 2 * lanes;
  }
}

}  // namespace bd
