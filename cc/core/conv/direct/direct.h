// Direct convolution: register tiles, or dot products, over a strip of the source.
//
//   direct_plan.cc    strips, splits, K chunks
//   direct_pack.cc    HWIO weights -> the order the tiles read them in
//   direct_driver.cc  tasks over threads: K chunks over strips
//   direct_strip.cc   the source of a task, in place or in scratch
//   direct_panels.cc  a K chunk of a task as a call of the loop over panels (cc/core/gemm)
#pragma once

#include <cstdint>
#include <vector>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/common/output_groups.h"
#include "cc/core/gemm/fip.h"

namespace bd {

// Algorithm::variant.
enum DirectVariant {
  kBlockedTiles,  // "direct": over a blocked source
  kFipTiles,      // "paired": the same, multiplied in pairs
  kNhwcTiles,     // "direct_plain": over an NHWC source (first layers, matrices)
  kDotLanes,      // "dot": few output channels: lanes run over input channels
};

// A strip is a range of output pixels of one image whose source is brought into per-thread scratch
// (or read in place). A task is a strip times a range of output groups; K runs in chunks of
// icb_chunk source blocks, of which tiles multiply pass_blocks at once.
struct DirectPlan {
  DirectVariant variant = kBlockedTiles;
  // kBf16, and kInt8 or kWords, of low precision; then what follows counts dwords wherever floats
  // are counted.
  TileFamily family = TileFamily::kBlocked;
  int64_t pixel = 16;  // of a block
  // Of an NHWC source strides count units of so many bytes, elements; a pixel has so many in a
  // strip, and a tap, which is a kernel row unless columns are dilated.
  int64_t unit = sizeof(float), channels = 0, tap_units = 0;
  // The last one of odd taps of bfloat16 is multiplied beside a zero, not beside what follows,
  // which may be infinite: from this unit on a strip repeats last channels, and has zeros in the
  // place of the others.
  int64_t last_channels = 0;
  OutputGroups groups;

  bool in_place = false;     // 1x1 without padding: tiles read src itself
  bool by_row = false;       // pixels of neighbouring rows do not follow each other
  bool padded = false;       // a strip of a blocked source is rows as they are, in their padding
  bool is_line = false;      // a plain plane of one row, of which strips are any pixels
  int64_t strip_pixels = 0;  // whole rows unless is_line, or in_place and not by_row
  int64_t strips = 0;        // an image
  int64_t group_splits = 1;
  int64_t icb_chunk = 0, pass_blocks = 0;

  // Taps of one K chunk, in the order weights are packed: floats, of low precision bytes.
  std::vector<int64_t> tap_offsets;
  int64_t taps_per_block = 1;
  int64_t tap_length = 16;  // dwords
  int64_t px_stride = 16;   // floats between pixels
  int64_t row_stride = 0;   // and between rows, if by_row
  // A strip holds, a source block and a kernel column, rows_per_column rows; phase_row[p] is the
  // first row of source rows r with r % sh == p. Of an NHWC source, and if padded, it holds
  // strip_columns of each row, padding included; if padded, rows_per_column rows a source block.
  int64_t strip_rows = 0, rows_per_column = 0, strip_columns = 0;
  std::vector<int64_t> phase_row;

  // For each thread: the strip; rows of a plain dst; the weights of a group and K chunk, packed in
  // the run, or in pairs times a power of two.
  ScratchPiece<float> strip, row, scaled;
  FipRows pairs;  // of a task's pixels

  // Changing weights that one task reads, once: each panel is packed into `scaled` right before it
  // is multiplied, and stays in L2 meanwhile.
  bool packs_panels = false;

  bool fip() const { return variant == kFipTiles; }
  bool low_precision() const { return IsLowPrecision(family); }
  bool words() const { return family == TileFamily::kWords; }  // which never lie in src itself
  // Dwords of channels.
  int64_t Dwords(int64_t of_channels) const { return CeilDiv(of_channels, PerDword(family)); }
  // After packed weights that are multiplied in pairs: FipSource::of_packed in the first of 16
  // floats; then, of each K chunk, FipCall::unscale of all channels and column_terms.
  int64_t pairs_floats(int64_t ocb, int64_t chunks) const {
    return fip() ? kBlock + chunks * 2 * ocb * kBlock : 0;
  }
  bool odd_taps() const { return family == TileFamily::kBf16 && tap_units % 2 != 0; }
  bool blocked() const { return variant != kNhwcTiles; }
  // Columns that so many pixels of a row read, padding included.
  static int64_t SourceColumns(const ConvDesc& d, int64_t pixels) {
    return (pixels - 1) * d.sw() + (d.kw() - 1) * d.dw() + 1;
  }
};

void PackDirect(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);
int DirectExponent(const ConvPlan& plan, const float* src);
void SuitDirect(const ConvPlan& plan, int exponent, float* packed, ThreadPool& pool);
void RunDirect(const ConvRun& run, ThreadPool& pool);

// Packs source blocks [b0, b1) of a group of a blocked source from run.buffers.plain, the first at
// `out`.
void PackPanel(const ConvRun& run, const OutputGroup& group, int64_t b0, int64_t b1, float* out);

// A task's share, or a part of it: output pixels [begin, end) of image n, output groups
// [group_begin, group_end). The weights of groups up to `ahead_end` are to be brought along.
struct TaskRange {
  int64_t n, begin, end, group_begin, group_end, ahead_end;
};

// Where a task's tiles go: its first pixel of output block `first_block`, and the
// distance of blocks in elements. dst itself, or scratch.
struct TileTarget {
  float* base;
  int64_t first_block, block_stride;
};

// Brings source blocks [b0, b1) of a task within reach of the taps.
const float* SourceFor(const ConvRun& run, const TaskRange& r, int64_t b0, int64_t b1, int thread);

// A K chunk of a task's source: the first pixel as the taps see it.
struct ChunkSource {
  const float* src = nullptr;
  FipCall pairs;
};

// `pixels` pixels from `src` on as tiles in pairs take them. Pixels that are part of a task take
// the task's exponent, if not null, whoever computes them.
FipCall PreparePairs(const ConvRun& run, const float* src, int64_t b0, int64_t b1, int64_t pixels,
                     int thread, const int* exponent);

// All tiles of one K chunk of a task: source blocks [b0, b1), output groups
// [g0, g1), the task's pixels. The weights of the task's next group come to L2 alongside.
void RunChunk(const ConvRun& run, const TaskRange& r, int64_t g0, int64_t g1, int64_t b0,
              int64_t b1, const ChunkSource& from, const TileTarget& target, int thread);

// How the source of register tiles lies.
TileFamily FamilyOf(const DirectPlan& p);

}  // namespace bd
