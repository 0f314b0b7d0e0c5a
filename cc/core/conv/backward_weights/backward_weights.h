// The gradient of a convolution with respect to its weights:
//
//   dweights[kh][kw][c][o] = sum over n, y, x of
//       src[n][y sh + kh dh - pad_top][x sw + kw dw - pad_left][c] ddst[n][y][x][o]
//
//   BackwardWeightsPlan plan;                              // once a shape
//   std::string error = MakeBackwardWeightsPlan(desc, isa, threads, &plan);
//   RunBackwardWeights(plan, {src, ddst, dweights, scratch}, pool);
//
// For each tap it is a product of matrices whose long side are the pixels. Both tensors lie with
// channels innermost, so tiles read them in place: 16 channels of a source pixel, one by one, times
// the vectors of a block of output channels. Nothing is copied, and padding is pixels left out; the
// loop over panels (cc/core/gemm) would want ddst packed, which no later call reads again.
//
// Memory: pixels go by in chunks, of which all tiles are made before the next, so that a chunk of
// both tensors stays in L2. Work: threads share the blocks of channels; where weights are few and
// pixels many, they share the chunks, and sums of their own are added up in the end, always in the
// same order. Results depend on the number of threads by rounding alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/common/conv_desc.h"

namespace bd {

// Images [n0, n1), rows [y0, y1) of ddst. Of several images it has all rows.
struct PixelChunk {
  int64_t n0 = 0, n1 = 0, y0 = 0, y1 = 0;
};

// Rows of dweights that are made together: `rows` neighbouring floats of a source pixel, which
// meet columns [x0, x1) of ddst.
struct WeightRows {
  int64_t kh = 0;
  int64_t src = 0;  // floats from the pixel (y sh, x sw) of the padded source
  int64_t rows = 0;
  int64_t first_row = 0;  // of dweights as a matrix of oc columns
  int64_t x0 = 0, x1 = 0;
  bool first = true;  // no other entry before this one has these rows
};

// What shares source channels: entries [begin, end), and blocks [o0, o1) of output channels.
struct WeightUnit {
  int64_t begin = 0, end = 0;
  int64_t o0 = 0, o1 = 0;
};

struct BackwardWeightsPlan {
  ConvDesc desc;
  Isa isa = Isa::kGeneric;
  int threads = 1;
  bool depthwise = false;
  std::vector<WeightRows> rows;
  std::vector<WeightUnit> units;
  std::vector<PixelChunk> chunks;
  int64_t unit_tasks = 1, block_tasks = 1;  // of units, and of the output blocks of each
  int64_t splits = 1;                       // of the chunks, each with sums of its own
  ScratchBook scratch;
  ScratchPiece<float> sums;  // of all splits but the first

  int64_t floats() const { return desc.kh() * desc.kw() * (desc.ic() / desc.groups) * desc.oc(); }
};

// Of `desc`: no chain, no pooling, no parts of wider tensors. Fills *plan; returns an empty string
// or one line saying what is not supported.
std::string MakeBackwardWeightsPlan(const ConvDesc& desc, Isa isa, int threads,
                                    BackwardWeightsPlan* plan);

struct BackwardWeightsBuffers {
  const float* src = nullptr;
  const float* ddst = nullptr;
  float* dweights = nullptr;  // HWIO
  void* scratch = nullptr;    // plan.scratch.bytes(), 64-byte aligned
};

// `pool.num_threads()` must equal plan.threads.
void RunBackwardWeights(const BackwardWeightsPlan& plan, const BackwardWeightsBuffers& buffers,
                        ThreadPool& pool);

}  // namespace bd
