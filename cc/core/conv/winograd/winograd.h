// Winograd's convolution: winograd_kernel.h has the algebra.
//
//   winograd_plan.cc    when it pays, tasks, scratch
//   winograd_pack.cc    weights into the transformed domain
//   winograd_driver.cc  source and dst transforms, products plane by plane (cc/core/gemm)
#pragma once

#include <cstdint>
#include <vector>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/common/output_groups.h"
#include "cc/core/conv/winograd/winograd_kernel.h"
#include "cc/core/gemm/fip.h"

namespace bd {

// tiles_h x tiles_w tiles an image; a task is tile_block tiles of all images times a range of
// output groups, of which M has pass_groups at once. Planes are tile_pitch tiles apart.
struct WinogradPlan {
  int row = 0;                               // of kWinogradTransforms
  TileFamily family = TileFamily::kBlocked;  // kFip: in pairs; kWordSums: of bytes
  OutputGroups groups;
  int64_t plane_dwords = 0;  // of packed weights
  int64_t channels = 0;      // that are transformed, of all phases
  int64_t icb = 0;           // their blocks
  int64_t group_splits = 1, pass_groups = 1;
  int64_t tiles_h = 0, tiles_w = 0, tile_block = 0, tile_pitch = 0;
  int64_t most_ranges = 1;  // of channels, each with an M of its own; of bytes
  std::vector<int64_t> tap_offsets;
  ScratchPiece<float> strip;  // for each thread: V and M
  FipRows pairs;              // of the tiles in V

  const WinogradTransform& transform() const { return kWinogradTransforms[row]; }
  bool fip() const { return family == TileFamily::kFip; }
  bool bytes() const { return family == TileFamily::kWordSums; }
  bool bf16() const { return family == TileFamily::kBf16Sums; }
  // Dwords of so many channels of a tile in V.
  int64_t Dwords(int64_t of_channels) const { return CeilDiv(of_channels, PerDword(family)); }
};

// Algorithm::variant is the row of kWinogradTransforms. Weights are packed as U = G g G^T, made in
// double: [xi][group][icb][ic in block][block of group][16], where channels of phases are ordered
// [row][column][ic], or [of kPhases][ic, whole blocks]. With FIP, after each plane [ocb][16] to
// multiply sums by and [ocb][16] of terms (cc/core/gemm/fip.h). Planes of words and of bfloat16 are
// in dwords of two channels. Of bytes there are, after all planes, sums of each channel's weights
// [ocb][16], in int32, and the number of ranges.
void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);
void RunWinograd(const ConvRun& run, ThreadPool& pool);

}  // namespace bd
