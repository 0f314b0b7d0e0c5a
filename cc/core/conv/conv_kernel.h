// Contract between the convolution driver and its per-ISA micro-kernels.
//
// A tile kernel is a small matrix product. It multiplies `px` output pixels by
// `blocks` output channel blocks over a list of taps; a tap is a run of
// consecutive source floats:
//
//   dst[b][p][lane] = sum_t sum_i src[tap_offsets[t] + p * px_stride + i]
//                                 * weights[t][i][b][lane]
//
// Stride, dilation and padding are in the offsets and in the strip the driver
// copied; the kernel does not know of them.
#ifndef CC_CORE_CONV_CONV_KERNEL_H_
#define CC_CORE_CONV_CONV_KERNEL_H_

#include <cstdint>

#include "cc/base/kernel_table.h"
#include "cc/core/conv/conv_epilogue.h"

namespace bd {

// What tiles of paired products add to their sums: conv_paired_kernel.h.
struct PairedTerms {
  const float* pixel_terms;    // a float a pixel
  const float* channel_terms;  // and a channel of the tile
  const float* unscale;        // sums times this, a float a channel, are the result
};

struct TileArgs {
  const float* src;
  const int64_t* tap_offsets;
  int64_t taps, tap_length;
  int64_t tail_taps, tail_length;  // follow the `taps`: last, partial block
  int64_t px_stride;               // floats between pixels; 16 where blocked
  const float* weights;
  // Brought to L2 alongside: from `prefetch`, prefetch_step floats for each row of
  // weights.
  const float* prefetch;
  int64_t prefetch_step;
  float* dst;
  int64_t dst_block_stride;
  int64_t tiles;  // neighbouring tiles of src and dst, one after the other
  PairedTerms paired;
  TileEpilogue epilogue;
};

// dst[p][o] = bias[o] + sum over taps and lanes; oc <= kMaxDotChannels.
// weights: [tap][oc][16]; dst is dense.
struct DotArgs {
  const float* src;
  const int64_t* tap_offsets;
  int64_t taps;
  const float* weights;
  int64_t px, oc;
  const float* bias;
  float* dst;
};

// Copies `px` pixels of 16 floats from a source row to a strip:
// dst[p] = src[first + p * stride], zero where outside [0, size) or src null.
struct GatherArgs {
  const float* src;
  float* dst;
  int64_t px, first, stride, size;
};

// dst[r] = scale[r] * weights[r], rows of row_floats floats, whole blocks.
struct ScaleRowsArgs {
  const float* weights;
  const float* scale;
  int64_t rows, row_floats;
  float* dst;
};

// Runs the chain over px pixels of channels [first, first + count) of a plain
// dst and stores them: dst[p * channels + first + c].
struct PlainStoreArgs {
  const float* blocks;  // [block][px][16]; null: `row` already holds [px][count]
  float* row;           // px * count floats of scratch
  float* dst;           // channel 0 of the first pixel
  int64_t px, first, count, channels;
  const PostOpProgram* program;
  int64_t dst_offset, sample_offset;  // of the first pixel's channel 0
};

// dst[p] = the maximum of pixels 2p and 2p + 1 of two rows.
struct MaxRowArgs {
  const float* src;
  int64_t row_stride;
  float* dst;
  int64_t px;
};

constexpr int kMaxTilePixels = 14;
constexpr int kMaxTileBlocks = 2;
constexpr int kMaxDotChannels = 4;
constexpr int kImageStrides[] = {3, 6};  // px_stride: RGB, every pixel or every other
constexpr int kNumImageStrides = 2;

struct ConvKernels {
  int tile_blocks;  // output blocks the widest tile covers
  int tile_pixels;  // pixels the widest tile covers
  // Where tiles cover one block: pixels of those that half a last block shares with the block
  // before it. 0: there are none.
  int joined_tile_pixels;
  // [blocks - 1][px - 1]
  void (*tile[kMaxTileBlocks][kMaxTilePixels])(const TileArgs&);  // px_stride == 16
  // The same where the last block has at most 8 channels.
  void (*half_tile[kMaxTileBlocks][kMaxTilePixels])(const TileArgs&);
  void (*plain_tile[kMaxTileBlocks][kMaxTilePixels])(const TileArgs&);  // any px_stride
  // That of kImageStrides, without prefetching: few weights, which stay in L1.
  void (*image_tile[kNumImageStrides][kMaxTileBlocks][kMaxTilePixels])(const TileArgs&);
  void (*dot)(const DotArgs&);
  void (*gather)(const GatherArgs&);
  void (*scale_rows)(const ScaleRowsArgs&);
  void (*plain_store)(const PlainStoreArgs&);
  void (*max_row)(const MaxRowArgs&);
};

BD_KERNEL_TABLE(ConvKernels)

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_KERNEL_H_
