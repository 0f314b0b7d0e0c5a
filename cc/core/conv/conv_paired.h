// Register tiles that multiply channels in pairs (fip_kernel.h): where they pay,
// what is packed for them, and what a task binds.
//
// A pair adds x to y, so the sums keep the digits of both only where both are of one
// magnitude. Weights are multiplied by a power of two an output channel, which brings their
// root mean square to about 1, and by 2^e, where 2^e is about the root mean square of the
// source that a task reads, e being a multiple of kExponentStep. They are packed with the e
// of the source at hand then. A task with another e multiplies them by the difference first,
// which rounds nothing: a result does not depend on what was packed. A source that reads as
// zeros gives exactly zero.
//
// So all pixels of a task share an exponent, and a pixel's error is relative to the root
// mean square of what its task reads, not to its own. Beyond 2^-50 and 2^50 the exponent
// stays behind and sums keep fewer digits; pairs of source channels beyond 2^60 overflow.
#ifndef CC_CORE_CONV_CONV_PAIRED_H_
#define CC_CORE_CONV_CONV_PAIRED_H_

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/gemm/fip_kernel.h"

namespace bd {

// Cycles: a multiply-add in pairs, where one by itself takes 1; the terms of the source, a
// vector of it and a pixel.
constexpr double kPairedCycles = 0.72, kTermsVector = 2, kTermsPixel = 3;

// Whether the tiles of a convolution of that form multiply in pairs.
bool ChoosePaired(const ConvDesc& desc, ConvForm form, Isa isa);

// Register tiles: packed behind the weights, in floats:
//   [ocb][16]            what sums are multiplied by in the end; 0 where all weights are
//   [group][icb][lanes]  - sum over a source block's taps and pairs of s y1 y2
//   [16]                 e, and zeros
struct PairedTrailer {
  int64_t unscale, channel_terms, exponent;  // offsets into the packed weights
  int64_t floats;
};
PairedTrailer PairedTrailerOf(const ConvPlan& plan);

// The e of a source, from samples of it; 0 without one.
int PairedExponentOf(const ConvPlan& plan, const float* src);

// Scales the packed weights of a group and fills in its share of the trailer.
void PackPairedGroup(const ConvPlan& plan, const OutputGroup& group, int exponent, float* packed);

// What tiles need of `pixels` pixels from `from->src` on: their terms, which go to `terms`,
// and e less that of the packed weights.
void PreparePaired(const ConvRun& run, int64_t b0, int64_t b1, int64_t pixels, float* terms,
                   ChunkSource* from);

// Winograd's planes: scales the packed weights [channels][lanes] of a group in one plane.
// unscale and channel_terms, a float a lane, are as above, of all channels.
void PackPairedPlane(int64_t channels, int64_t lanes, float* weights, float* unscale,
                     float* channel_terms);

// Scales the pixels of each of `blocks` blocks of a plane, `a.taps` of them whole, to a root
// mean square of about 1, and makes their terms; returns what sums are to be multiplied by.
float PreparePairedPlane(const ConvRun& run, const FipSourceArgs& a, int64_t blocks);

// What a group's tiles need besides weights: memory for one group, and its terms.
struct PairedGroup {
  alignas(64) float channel_terms[kMaxTileBlocks * kBlock];
  alignas(64) float unscale[kMaxTileBlocks * kBlock];

  // Of source blocks [b0, b1).
  void Bind(const ConvRun& run, const OutputGroup& group, int64_t b0, int64_t b1,
            const ChunkSource& from);
};

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_PAIRED_H_
