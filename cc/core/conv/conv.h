// Convolution: ConvDesc -> ConvPlan (immutable) -> PackConvWeights, RunConv.
//
//   conv_plan.cc     what to run: form, blocking, splits, scratch size
//   conv_pack.cc     HWIO weights -> the order the kernels read them in
//   conv_paired.h    register tiles that multiply channels in pairs
//   conv_rows.h      inner products of few rows
//   conv_depthwise.h rows of depthwise convolutions
//   conv_driver.cc   binds a plan to buffers
//   conv_tiles_driver.cc  register tiles: tasks over threads, source strips
//   conv_chunk_driver.cc  the tiles of a task: weights and calls of kernels
//   conv_kernel.cc   per-ISA micro-kernels; conv_kernel.h is their contract
//   conv_ref.cc      the definition, in double, for tests
#ifndef CC_CORE_CONV_CONV_H_
#define CC_CORE_CONV_CONV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/isa.h"
#include "cc/base/scratch.h"
#include "cc/base/thread_pool.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/layout.h"

namespace bd {

// kAutoSmall: the fastest whose packed weights take at most twice the plain ones' memory;
// F(4x4, 3x3) takes four times. kAutoSmallest: at most 9/8, which is no Winograd.
// kWinograd, kPaired: wherever they apply, else kDirect.
enum class ConvAlgorithm {
  kAuto,
  kDirect,
  kWinograd,
  kPaired,
  kAutoSmall,
  kAutoSmallest,
};

// The convolution asked for. Padding is resolved (cc/layout/window.h); weights
// are HWIO [kh, kw, ic / groups, oc]. src is [n, ih, iw, ic] or nChw16c of the
// same logical shape, dst likewise with [n, dst_h(), dst_w(), oc]. Operands of the chain
// that are tensors have the shape before pooling.
struct ConvDesc {
  int64_t n = 1, ic = 1, ih = 1, iw = 1;
  int64_t oc = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t groups = 1;
  Layout src_layout = Layout::nChw16c;
  Layout dst_layout = Layout::nChw16c;
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  bool keeps_weights = false;  // packed once for many calls, so that packing may take its time
  PostOpChain post_ops;
  // Of a tensor that is part of a wider nChw16c one: the channel blocks of an image of the
  // latter. 0: it is a tensor of its own. Operands of post-ops always are.
  int64_t src_image_blocks = 0, dst_image_blocks = 0;
  // dst holds, of the result behind the chain, the maxima of pool_h x pool_w pixels that
  // touch; rows and columns that fill no window are left out. 1x1 (all) or 2x2, which Winograd
  // stores where its tiles hold whole windows and the chain is a bias and a clamp at most.
  int64_t pool_h = 1, pool_w = 1;

  bool pooled() const { return pool_h != 1 || pool_w != 1; }
  int64_t dst_h() const { return oh / pool_h; }
  int64_t dst_w() const { return ow / pool_w; }
};

// How the multiply-adds are organised.
enum class ConvForm {
  kTile,       // register tiles over a blocked source
  kPlainTile,  // register tiles over an NHWC source (first layers)
  kDot,        // few output channels: lanes run over input channels
  kDepthwise,  // one input and one output channel a group
  kWinograd,   // register tiles in a transformed domain
  kRows,       // an inner product of few rows: weights are read as they are
};

constexpr int kNoWinograd = -1;

// Order of packed weights; equal packings of one weight can be shared.
struct ConvPacking {
  ConvForm form = ConvForm::kTile;
  int group_blocks = 1;        // output blocks of a group
  bool joins_half = false;     // the last group takes half a last block in, too
  int winograd = kNoWinograd;  // row of kWinogradTransforms
  bool paired = false;         // kTile: products of channels in pairs (conv_paired.h)
  bool operator==(const ConvPacking& o) const {
    return form == o.form && group_blocks == o.group_blocks && joins_half == o.joins_half &&
           winograd == o.winograd && paired == o.paired;
  }
  // The kernels read HWIO; what is packed, if anything, is a note: whether it is finite.
  bool as_is() const { return form == ConvForm::kRows; }
};

// Output blocks that one register tile computes, and the input they need.
struct OutputGroup {
  int64_t first_block, blocks;  // output blocks
  int64_t icb_begin, icb_end;   // input blocks that reach them
  int64_t offset;               // floats into the packed weights
};

// Chain split into what the tile does in registers and the rest.
struct ConvEpilogue {
  bool has_bias = false, has_sum = false;
  OperandRef bias;
  OperandRef sum;  // accumulated before the rest
  float sum_scale = 1.f;
  bool clamp = false;
  float lo = 0.f, hi = 0.f;
  PostOpChain rest;   // empty, or what runs on the tile before the store
  bool silu = false;  // rest is x logistic(x)
};

struct ConvPlan {
  ConvDesc desc;
  Isa isa = Isa::kGeneric;
  int threads = 1;
  ConvPacking packing;
  ConvEpilogue epilogue;

  int64_t icb = 0, ocb = 0;  // channel blocks of src and dst
  // Blocked tensors: floats from one image to the next, and pixels of a plane of dst.
  int64_t src_image = 0, dst_image = 0, dst_plane = 0;
  std::vector<OutputGroup> groups;
  int64_t widest_blocks = 0;  // of a group
  int64_t packed_floats = 0;

  // A strip is a range of output pixels of one image whose source is brought
  // into per-thread scratch (or read in place). A task is a strip times a range
  // of output groups; K runs in chunks of icb_chunk source blocks, of which tiles multiply
  // pass_blocks at once.
  bool in_place = false;     // 1x1 without padding: tiles read src itself
  bool by_row = false;       // pixels of neighbouring rows do not follow each other
  int64_t strip_pixels = 0;  // whole rows unless in_place and not by_row
  int64_t strips = 0;        // an image
  int64_t group_splits = 1;
  int64_t icb_chunk = 0, pass_blocks = 0;
  int64_t tasks = 0;

  // Taps of one K chunk, in the order weights are packed.
  std::vector<int64_t> tap_offsets;
  int64_t taps_per_block = 1;
  int64_t tap_length = 16;
  int64_t px_stride = 16;  // floats between pixels
  int64_t row_stride = 0;  // and between rows, if by_row
  // A strip holds, a source block and a kernel column, rows_per_column rows;
  // phase_row[p] is the first row of source rows r with r % sh == p. Of an NHWC source it
  // holds strip_columns of each row, padding included.
  int64_t strip_rows = 0, rows_per_column = 0, strip_columns = 0;
  std::vector<int64_t> phase_row;

  // kWinograd: tiles_h x tiles_w tiles an image; a task is tile_block tiles of all
  // images times a range of output groups. Planes are tile_pitch tiles apart.
  int64_t tiles_h = 0, tiles_w = 0, tile_block = 0, tile_pitch = 0;
  bool asks_ahead = false;   // src and dst are larger than caches, and L2 is large enough
  bool pools_tiles = false;  // the dst stage stores maxima of its tiles

  // Padded bias; a strip or Winograd's V and M; rows of a plain dst; weights times
  // a power of two, those of a group and K chunk; terms of paired products a
  // source pixel: for each thread.
  ScratchPiece<float> bias, strip, row, scaled, terms;
  ScratchBook scratch;
  int64_t scratch_bytes() const { return static_cast<int64_t>(scratch.bytes()); }
  // "direct", "paired", "direct_plain", "dot", "depthwise", "rows", or of Winograd the tile of
  // its outputs, such as "winograd4x4"
  const char* algorithm_name() const;
};

// Fills *plan; returns an empty string or one line saying what is wrong.
std::string MakeConvPlan(const ConvDesc& desc, Isa isa, int threads, ConvPlan* plan);

// `packed` holds plan.packed_floats floats, 64-byte aligned.
// `src` is one that the weights will meet, or null: some orders suit its magnitude.
void PackConvWeights(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                     const float* src = nullptr);

struct ConvBuffers {
  const float* src = nullptr;          // of a part: its first block
  const float* packed = nullptr;       // may be null where plan.packing.as_is()
  const float* const* args = nullptr;  // base pointers of the post-op inputs
  float* dst = nullptr;     // may be the operand of a sum, if not pooled; sums without one read it
  void* scratch = nullptr;  // plan.scratch_bytes(); 64-byte aligned to be fast
  const float* plain = nullptr;  // HWIO, where plan.packing.as_is()
};

// `pool.num_threads()` must equal plan.threads.
void RunConv(const ConvPlan& plan, const ConvBuffers& buffers, ThreadPool& pool);

// The definition: double accumulation over plain loops, chain included.
void ConvRef(const ConvDesc& desc, const float* src, const float* hwio, const float* const* args,
             float* dst);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_H_
