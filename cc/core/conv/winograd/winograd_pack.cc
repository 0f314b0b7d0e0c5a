// Weights into Winograd's domain; the matrices are in winograd_kernel.h.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/conv/winograd/winograd_kernel.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

constexpr bool FitsKernels() {
  for (const WinogradTransform& t : kWinogradTransforms) {
    if (t.alpha_h() > kMaxAlpha || t.alpha_w() > kMaxAlpha) return false;
    if (t.taps_h() > kMaxTaps || t.taps_w() > kMaxTaps) return false;
  }
  return true;
}
static_assert(FitsKernels(), "kMaxAlpha and kMaxTaps bound kWinogradTransforms");

constexpr int64_t kTaskFloats = 32 << 10;  // packed weights worth a task

WinogradAxis MakeAxis(int m, int r) {
  WinogradAxis axis = {r, m + r - 1, {}};
  const WinogradPoints half = WinogradPointsOf(axis.alpha);
  double p[kMaxAlpha];
  int count = 0;
  if (half.zero) p[count++] = 0.;
  for (int j = 0; j < half.pairs; ++j) {
    p[count++] = half.p[j];
    p[count++] = -half.p[j];
  }
  for (int i = 0; i < count; ++i) {
    double denominator = 1.;
    for (int j = 0; j < count; ++j) denominator *= j == i ? 1. : p[i] - p[j];
    double power = 1.;
    for (int k = 0; k < axis.taps; ++k, power *= p[i]) axis.g[i][k] = power / denominator;
  }
  axis.g[axis.alpha - 1][axis.taps - 1] = 1.;
  return axis;
}

// Of the phases of 3 taps at stride 2, by their first pixel.
constexpr WinogradAxis kSplitAxes[] = {{2, 3, {{1, 0}, {1, 1}, {0, 1}}}, {1, 3, {{1}, {0}, {1}}}};

// s G of bytes (winograd_kernel.h): its products are exact in double and in 16 bits.
constexpr WinogradAxis kBytesAxis = {
    3, 6, {{6, 0, 0}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 6}}};

// The fewest equal ranges of channels whose sums are exact, whatever the source is.
int32_t RangesOf(const ConvPlan& plan, const int8_t* hwio) {
  const WinogradPlan& p = plan.Own<WinogradPlan>();
  const ConvDesc& d = plan.desc;
  for (int64_t ranges = 1; ranges < p.most_ranges; ++ranges) {
    const int64_t blocks = CeilDiv(p.icb, ranges), length = blocks * kBlock;
    bool fit = true;
    for (int64_t c0 = 0; c0 < d.ic() && fit; c0 += length) {
      std::vector<int64_t> sums(static_cast<size_t>(d.oc()));
      for (int64_t tap = 0; tap < d.kh() * d.kw(); ++tap) {
        for (int64_t c = c0; c < std::min(d.ic(), c0 + length); ++c) {
          const int8_t* const row = hwio + (tap * d.ic() + c) * d.oc();
          for (int64_t o = 0; o < d.oc(); ++o) sums[static_cast<size_t>(o)] += std::abs(row[o]);
        }
      }
      for (int64_t sum : sums) fit = fit && sum <= kMostBytesWeights;
    }
    if (fit) return static_cast<int32_t>(CeilDiv(p.icb, blocks));
  }
  return static_cast<int32_t>(p.most_ranges);
}

// What stands after the planes of bytes: sums of each channel's weights, and the number of ranges.
void PackSums(const ConvPlan& plan, const int8_t* hwio, int32_t* sums) {
  const ConvDesc& d = plan.desc;
  std::fill_n(sums, plan.ocb * kBlock, 0);
  for (int64_t i = 0; i < d.kh() * d.kw() * d.ic(); ++i) {
    for (int64_t o = 0; o < d.oc(); ++o) sums[o] += hwio[i * d.oc() + o];
  }
  sums[plan.ocb * kBlock] = RangesOf(plan, hwio);
}

// [xi][16] floats as numbers of 16 bits, the first or second half of dwords [xi][plane_dwords].
void StoreHalves(const float* from, bool bytes, int64_t planes, int64_t plane_dwords, int64_t half,
                 float* dwords) {
  for (int64_t xi = 0; xi < planes; ++xi, from += kBlock, dwords += plane_dwords) {
    uint16_t* const out = As<uint16_t>(dwords) + half;
    for (int64_t lane = 0; lane < kBlock; ++lane) {
      out[2 * lane] = bytes ? static_cast<uint16_t>(static_cast<int16_t>(from[lane]))
                            : RoundToBfloat16(from[lane]).bits;
    }
  }
}

}  // namespace

void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const WinogradPlan& p = plan.Own<WinogradPlan>();
  const ConvDesc& d = plan.desc;
  const WinogradTransform& t = p.transform();
  std::vector<float> widened(d.low_precision() ? d.kh() * d.kw() * d.ic() * d.oc() : 0);
  if (p.bytes()) {
    const int8_t* const bytes = As<const int8_t>(hwio);
    std::copy_n(bytes, widened.size(), widened.data());
    PackSums(plan, bytes, As<int32_t>(packed + t.planes() * p.plane_dwords));
  } else {
    for (size_t i = 0; i < widened.size(); ++i)
      widened[i] = PackedBfloat16(d.types.weights, hwio, static_cast<int64_t>(i));
  }
  if (d.low_precision()) hwio = widened.data();
  const WinogradAxis h = p.bytes() ? kBytesAxis : MakeAxis(t.mh, t.taps_h());
  const WinogradAxis w = p.bytes() ? kBytesAxis : MakeAxis(t.mw, t.taps_w());
  const bool halves = p.bytes() || p.bf16();
  const WinogradWeightsKernels& kernels = WinogradWeightsKernelsFor(plan.isa);
  const int64_t planes = t.planes(), channels = p.channels, of_phase = channels / t.phases();
  const int64_t groups = p.groups.size();
  const int64_t most =
      std::max<int64_t>(1, plan.packed_floats() / std::max<int64_t>(1, groups) / kTaskFloats);
  const int64_t dwords = p.Dwords(channels), per_dword = PerDword(p.family);
  const int64_t splits = std::min(most, dwords);  // of a group's source channels
  pool.ParallelFor(groups * splits, [&](int64_t task, int) {
    const OutputGroup& g = p.groups[task / splits];
    const int64_t lanes = g.blocks * kBlock, split = task % splits;
    WinogradWeightsArgs a;
    const float* taps[kMaxTaps * kMaxTaps];
    a.h = &h;
    a.w = &w;
    a.taps = taps;
    const int64_t begin = dwords * split / splits, end = dwords * (split + 1) / splits;
    alignas(64) float whole[kMaxWinogradPlanes * kBlock];
    a.plane_stride = halves ? kBlock : p.plane_dwords;
    for (int64_t xi = 0; halves && xi < planes; ++xi) {
      std::memset(packed + xi * p.plane_dwords + g.offset + begin * lanes, 0,
                  (end - begin) * lanes * sizeof(float));
    }
    for (int64_t c = begin * per_dword; c < std::min(channels, end * per_dword); ++c) {
      const int64_t phase = c / of_phase, channel = c % of_phase;
      if (channel >= d.ic()) continue;
      int64_t y = phase / t.stride, x = phase % t.stride;
      if (t.split_phases()) {
        y = kPhases[phase].row;
        x = kPhases[phase].column;
        a.h = &kSplitAxes[y];
        a.w = &kSplitAxes[x];
      }
      for (int64_t b = 0; b < g.blocks; ++b) {
        const int64_t o = (g.first_block + b) * kBlock;
        a.lanes = std::min(kBlock, d.oc() - o);
        std::fill(taps, taps + a.h->taps * a.w->taps, nullptr);
        for (int64_t kh = y; kh < d.kh(); kh += t.stride) {
          for (int64_t kw = x; kw < d.kw(); kw += t.stride) {
            taps[kh / t.stride * a.w->taps + kw / t.stride] =
                hwio + ((kh * d.kw() + kw) * d.ic() + channel) * d.oc() + o;
          }
        }
        float* const out = packed + g.offset + c / per_dword * lanes + b * kBlock;
        a.out = halves ? whole : out;
        kernels.transform(a);
        if (halves) StoreHalves(whole, p.bytes(), planes, p.plane_dwords, c % 2, out);
      }
    }
  });
  if (!p.fip()) return;
  pool.ParallelFor(groups * planes, [&](int64_t task, int) {
    const OutputGroup& g = p.groups[task / planes];
    float* plane = packed + task % planes * p.plane_dwords;
    float* unscale = plane + p.plane_dwords - 2 * plan.ocb * kBlock + g.first_block * kBlock;
    PackFip(plan.isa, channels, channels / kBlock, g.blocks * kBlock, plane + g.offset, unscale,
            unscale + plan.ocb * kBlock);
  });
}

}  // namespace bd
