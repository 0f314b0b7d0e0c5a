// What direct tiles that multiply in pairs need beside weights and source (cc/core/gemm/fip.h).
#pragma once

#include "cc/core/conv/direct/direct.h"
#include "cc/core/gemm/tiles/fip_kernel.h"

namespace bd {

// Packed behind the weights, in floats:
//   [ocb][16]            what sums are multiplied by in the end; 0 where all weights are
//   [group][icb][lanes]  - sum over a source block's taps and pairs of s y1 y2; NaN: see
//                        MarkPanelApart
//   [16]                 e, and zeros
struct FipTrailer {
  int64_t unscale, channel_terms, exponent;  // offsets into the packed weights
  int64_t floats;
};
FipTrailer FipTrailerOf(const ConvPlan& plan);

// The e of a source, from samples of it; 0 without one.
int SourceExponentOf(const ConvPlan& plan, const float* src);

// Scales the packed weights of a group and fills in its share of the trailer.
void PackFipGroup(const ConvPlan& plan, const OutputGroup& group, int exponent, float* packed);

// What tiles need of `pixels` pixels from `from->src` on, in the thread's scratch: their terms,
// which of them stand apart, and e less that of the packed weights. Pixels that are part of a task
// take the task's e, `shared` if not null, whoever computes them.
void PrepareFip(const ConvRun& run, int64_t b0, int64_t b1, int64_t pixels, int thread,
                const int* shared, ChunkSource* from);

// What a group's tiles need besides weights: memory for one group, and its terms.
struct FipGroup {
  alignas(64) float channel_terms[kMaxTileBlocks * kBlock];
  alignas(64) float unscale[kMaxTileBlocks * kBlock];

  // Of source blocks [b0, b1).
  void Bind(const ConvRun& run, const OutputGroup& group, int64_t b0, int64_t b1,
            const ChunkSource& from);
};

}  // namespace bd
