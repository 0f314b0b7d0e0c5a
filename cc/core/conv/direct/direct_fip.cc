#include "cc/core/conv/direct/direct_fip.h"

#include <algorithm>
#include <cmath>

#include "cc/core/gemm/fip.h"

namespace bd {
namespace {

constexpr int64_t kSamples = 256;  // vectors of a source that packing looks at

int64_t WholeBlocks(const ConvDesc& d) { return d.ic() / kBlock; }

float TwoTo(int exponent) { return std::ldexp(1.f, exponent); }

}  // namespace

FipTrailer FipTrailerOf(const ConvPlan& plan) {
  const int64_t lanes = plan.ocb * kBlock;
  const int64_t weights = plan.desc.ic() * plan.desc.kh() * plan.desc.kw() * lanes;
  const int64_t exponent = weights + lanes + plan.icb * lanes;
  return {weights, weights + lanes, exponent, exponent + kBlock - weights};
}

int SourceExponentOf(const ConvPlan& plan, const float* src) {
  const int64_t plane = plan.desc.ih() * plan.desc.iw(), vectors = plan.icb * plane;
  const int64_t step = CeilDiv(vectors, kSamples);
  double squares = 0;
  int64_t count = 0;
  for (int64_t v = 0; src != nullptr && v < vectors; v += step, count += kBlock) {
    const float* at = src + (plan.src_block(v / plane) * plane + v % plane) * kBlock;
    for (int64_t i = 0; i < kBlock; ++i) squares += double{at[i]} * at[i];
  }
  return squares > 0 ? FipExponentOf(squares, count) : 0;  // zeros tell nothing about later ones
}

void PackFipGroup(const ConvPlan& plan, const OutputGroup& group, int exponent, float* packed) {
  const ConvDesc& d = plan.desc;
  const FipTrailer trailer = FipTrailerOf(plan);
  const int64_t lanes = group.blocks * kBlock, taps = d.kh() * d.kw(), rows = d.ic() * taps;
  float* weights = packed + group.offset;
  float* unscale = packed + trailer.unscale + group.first_block * kBlock;
  const bool in_shape = ScaleFipColumns(plan.isa, rows, lanes, exponent, weights, unscale);
  float* terms = packed + trailer.channel_terms + group.first_block * plan.icb * kBlock;
  std::fill(terms, terms + plan.icb * lanes, 0.f);
  for (int64_t b = 0; b < WholeBlocks(d); ++b) {
    AddFipChannelTerms(plan.isa, weights + b * taps * kBlock * lanes, lanes, taps,
                       terms + b * lanes);
    if (!in_shape) MarkPanelApart(terms + b * lanes);
  }
}

void PrepareFip(const ConvRun& run, int64_t b0, int64_t b1, int64_t pixels, int thread,
                const int* shared, ChunkSource* from) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  float* const terms = run.scratch.Grant(p.terms, thread);
  FipSourceArgs a;
  a.src = from->src;
  a.tap_offsets = p.tap_offsets.data();
  a.taps = (std::min(b1, WholeBlocks(run.d)) - b0) * p.taps_per_block;
  a.px = pixels;
  a.terms = terms;
  a.squares = terms + p.terms_pixels;
  a.sums = a.squares + p.terms_pixels;
  const double squares = FipKernelsFor(run.plan.isa).source_terms(a);
  const int64_t n = a.taps * kBlock;
  const int packed = static_cast<int>(run.buffers.packed[FipTrailerOf(run.plan).exponent]);
  from->pixel_terms = terms;
  from->exponent = shared != nullptr ? *shared : FipExponentOf(squares, pixels * n) - packed;
  uint8_t* const apart = run.scratch.Grant(p.apart, thread);
  const bool any =
      MarkApart(run.plan.isa, a.squares, a.sums, pixels, n, from->exponent + packed, apart);
  from->apart = any ? apart : nullptr;
}

void FipGroup::Bind(const ConvRun& run, const OutputGroup& group, int64_t b0, int64_t b1,
                    const ChunkSource& from) {
  const ConvPlan& plan = run.plan;
  const FipTrailer trailer = FipTrailerOf(plan);
  const int64_t lanes = group.blocks * kBlock, whole = std::min(b1, WholeBlocks(run.d));
  const float* packed = run.buffers.packed;
  const float* at_zero = packed + trailer.unscale + group.first_block * kBlock;
  const float* terms = packed + trailer.channel_terms + group.first_block * plan.icb * kBlock;
  const float up = TwoTo(from.exponent), down = TwoTo(-from.exponent);
  // A block at a time, whose sums stay in registers.
  for (int64_t lane = 0; lane < lanes; lane += kBlock) {
    float sums[kBlock] = {};
    for (int64_t b = b0; b < whole; ++b) {
      const float* of_block = terms + b * lanes + lane;
      for (int64_t i = 0; i < kBlock; ++i) sums[i] += of_block[i];
    }
    for (int64_t i = 0; i < kBlock; ++i) channel_terms[lane + i] = sums[i] * up * up;
    for (int64_t i = 0; i < kBlock; ++i) unscale[lane + i] = at_zero[lane + i] * down;
  }
}

}  // namespace bd
