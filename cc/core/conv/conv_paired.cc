#include "cc/core/conv/conv_paired.h"

#include <algorithm>
#include <cmath>

#include "cc/core/gemm/fip_kernel.h"

namespace bd {
namespace {

// Sums in pairs round at most (r + 1 / r) / 2 times as much where the source's root mean
// square is r times the weights', so within a step, r <= 4, by a factor of about 2.
constexpr int kExponentStep = 4;
constexpr int kMaxExponent = 48;  // its square, twice, is still a float

// Fewer channels save less than the source's terms take (16->96 at 112x112 gains 6 %, 32->16
// 2 %, 144->24 at 56x56 nothing).
constexpr int64_t kMinChannels = 16;
constexpr int64_t kMinOutputChannels = 16;
// Scales and terms are two vectors a plane beside its weights: a sixteenth at most.
constexpr int64_t kMinWinogradChannels = 32;

constexpr int64_t kSamples = 256;  // vectors of a source that packing looks at

int64_t WholeBlocks(const ConvDesc& d) { return d.ic / kBlock; }

float TwoTo(int exponent) { return std::ldexp(1.f, exponent); }

// Of `count` numbers. Where all are zeros, what rounding leaves of the weights must vanish
// against the channels that have no pair.
int ExponentOf(double squares, int64_t count) {
  if (count == 0 || !std::isfinite(squares)) return 0;
  if (squares == 0) return -kMaxExponent;
  constexpr double kMost = kMaxExponent / kExponentStep;
  const double steps = std::round(0.5 * std::log2(squares / count) / kExponentStep);
  return kExponentStep * static_cast<int>(std::clamp(steps, -kMost, kMost));
}

// The channel terms of `blocks` whole source blocks from `weights`, a row of `lanes` floats
// a source channel, added to `terms`.
void AddChannelTerms(const float* weights, int64_t lanes, int64_t taps, float* terms) {
  for (int64_t t = 0; t < taps; ++t, weights += kBlock * lanes) {
    for (const ChannelPair& pair : kChannelPairs) {
      const float* y = weights + pair.c * lanes;
      for (int64_t i = 0; i < lanes; ++i) terms[i] -= pair.sign * y[i] * y[lanes + i];
    }
  }
}

// Columns of [rows][lanes] times the power of two that brings each one's root mean square to
// about 2^exponent.
void ScaleColumns(int64_t rows, int64_t lanes, int exponent, float* weights, float* unscale) {
  for (int64_t i = 0; i < lanes; ++i) {
    double squares = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double y = weights[r * lanes + i];
      squares += y * y;
    }
    if (squares == 0) {
      unscale[i] = 0.f;
      continue;
    }
    const double to_one = std::isfinite(squares) ? std::round(-0.5 * std::log2(squares / rows)) : 0;
    const int e = exponent + static_cast<int>(std::clamp(to_one, -60., 60.));
    unscale[i] = TwoTo(-e);
    for (int64_t r = 0; r < rows; ++r) weights[r * lanes + i] *= TwoTo(e);
  }
}

}  // namespace

bool ChoosePaired(const ConvDesc& d, ConvForm form, Isa isa) {
  if ((form != ConvForm::kTile && form != ConvForm::kWinograd) || d.groups > 1) return false;
  if (FipKernelsFor(isa).tile_pixels == 0 || WholeBlocks(d) == 0) return false;
  if (d.algorithm == ConvAlgorithm::kPaired) return true;
  if (d.algorithm == ConvAlgorithm::kDirect || d.algorithm == ConvAlgorithm::kWinograd) {
    return false;
  }
  if (form == ConvForm::kWinograd &&
      (d.algorithm != ConvAlgorithm::kAuto || d.ic < kMinWinogradChannels)) {
    return false;
  }
  return AddsBesideMultiplies() && d.ic >= kMinChannels && d.oc >= kMinOutputChannels;
}

PairedTrailer PairedTrailerOf(const ConvPlan& plan) {
  const int64_t lanes = plan.ocb * kBlock;
  const int64_t weights = plan.desc.ic * plan.desc.kh * plan.desc.kw * lanes;
  const int64_t exponent = weights + lanes + plan.icb * lanes;
  return {weights, weights + lanes, exponent, exponent + kBlock - weights};
}

int PairedExponentOf(const ConvPlan& plan, const float* src) {
  const int64_t vectors = plan.icb * plan.desc.ih * plan.desc.iw;
  const int64_t step = CeilDiv(vectors, kSamples);
  double squares = 0;
  int64_t count = 0;
  for (int64_t v = 0; src != nullptr && v < vectors; v += step, count += kBlock) {
    for (int64_t i = 0; i < kBlock; ++i)
      squares += double{src[v * kBlock + i]} * src[v * kBlock + i];
  }
  return squares > 0 ? ExponentOf(squares, count) : 0;  // zeros tell nothing about later ones
}

void PackPairedGroup(const ConvPlan& plan, const OutputGroup& group, int exponent, float* packed) {
  const ConvDesc& d = plan.desc;
  const PairedTrailer trailer = PairedTrailerOf(plan);
  const int64_t lanes = group.blocks * kBlock, taps = d.kh * d.kw, rows = d.ic * taps;
  float* weights = packed + group.offset;
  float* unscale = packed + trailer.unscale + group.first_block * kBlock;
  ScaleColumns(rows, lanes, exponent, weights, unscale);
  float* terms = packed + trailer.channel_terms + group.first_block * plan.icb * kBlock;
  std::fill(terms, terms + plan.icb * lanes, 0.f);
  for (int64_t b = 0; b < WholeBlocks(d); ++b) {
    AddChannelTerms(weights + b * taps * kBlock * lanes, lanes, taps, terms + b * lanes);
  }
}

void PreparePaired(const ConvRun& run, int64_t b0, int64_t b1, int64_t pixels, float* terms,
                   ChunkSource* from) {
  FipSourceArgs a;
  a.src = from->src;
  a.tap_offsets = run.plan.tap_offsets.data();
  a.taps = (std::min(b1, WholeBlocks(run.d)) - b0) * run.plan.taps_per_block;
  a.px = pixels;
  a.terms = terms;
  const float squares = FipKernelsFor(run.plan.isa).source_terms(a);
  const int packed = static_cast<int>(run.buffers.packed[PairedTrailerOf(run.plan).exponent]);
  from->pixel_terms = terms;
  from->exponent = ExponentOf(squares, pixels * a.taps * kBlock) - packed;
  from->zeros = squares == 0 && a.taps == (b1 - b0) * run.plan.taps_per_block;
}

void PackPairedPlane(int64_t channels, int64_t lanes, float* weights, float* unscale,
                     float* channel_terms) {
  ScaleColumns(channels, lanes, 0, weights, unscale);
  std::fill(channel_terms, channel_terms + lanes, 0.f);
  AddChannelTerms(weights, lanes, channels / kBlock, channel_terms);
}

float PreparePairedPlane(const ConvRun& run, const FipSourceArgs& a, int64_t blocks) {
  const float squares = FipKernelsFor(run.plan.isa).source_terms(a);
  if (squares == 0 && a.taps == blocks) return 0;
  const int exponent = ExponentOf(squares, a.px * a.taps * kBlock);
  if (exponent == 0) return 1;
  const float down = TwoTo(-exponent);
  for (int64_t b = 0; b < blocks; ++b) {
    float* block = const_cast<float*>(a.src) + a.tap_offsets[b];
    FipKernelsFor(run.plan.isa).scale({block, down, a.px * kBlock, block});
  }
  for (int64_t p = 0; p < a.px; ++p) a.terms[p] *= down * down;
  return TwoTo(exponent);
}

void PairedGroup::Bind(const ConvRun& run, const OutputGroup& group, int64_t b0, int64_t b1,
                       const ChunkSource& from) {
  const ConvPlan& plan = run.plan;
  const PairedTrailer trailer = PairedTrailerOf(plan);
  const int64_t lanes = group.blocks * kBlock;
  const float* packed = run.buffers.packed;
  const float* at_zero = packed + trailer.unscale + group.first_block * kBlock;
  const float up = TwoTo(from.exponent), down = from.zeros ? 0.f : TwoTo(-from.exponent);
  for (int64_t i = 0; i < lanes; ++i) unscale[i] = at_zero[i] * down;
  std::fill(channel_terms, channel_terms + lanes, 0.f);
  const int64_t whole = std::min(b1, WholeBlocks(run.d));
  const float* terms = packed + trailer.channel_terms + group.first_block * plan.icb * kBlock;
  for (int64_t b = b0; b < whole; ++b) {
    for (int64_t i = 0; i < lanes; ++i) channel_terms[i] += terms[b * lanes + i];
  }
  for (int64_t i = 0; i < lanes; ++i) channel_terms[i] = channel_terms[i] * up * up;
}

}  // namespace bd
