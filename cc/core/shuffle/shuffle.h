// Shuffle: the C entries along one axis, seen as a (C/G) x G matrix and transposed,
//
//   dst[u + v * C/G] = src[u * G + v],   0 <= u < C/G,  0 <= v < G,
//
// for elements of 1, 2, 4 or 8 bytes of any type: only bits move.
//
//   ShuffleDesc -> MakeShufflePlan -> ShufflePlan (immutable) -> RunShuffle
//
// The way back is the same with C/G for G.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/size.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/shuffle/shuffle_kernel.h"

namespace bd {

// A plain tensor is [outer, channels, inner]: the axis and what lies around it. A
// blocked one is [outer, ceil(channels / block), inner, block] with the images
// outside and their pixels inside; dst's tail is written as zeros, of bytes as `tail`, src's does
// not matter.
struct ShuffleDesc {
  int64_t outer = 1, channels = 0, inner = 1;
  int64_t group = 1;  // G
  int64_t block = 1;  // 8, 16, or 1 for a plain tensor
  int64_t element_bytes = 4;
  uint8_t tail = 0;  // of bytes: the zero point of what they stand for

  int64_t num_blocks() const { return CeilDiv(channels, block); }
  int64_t size_bytes() const { return outer * num_blocks() * inner * block * element_bytes; }
  // The entry of src that entry c of dst is.
  int64_t SrcOf(int64_t c) const {
    const int64_t groups = channels / group;
    return c % groups * group + c / groups;
  }
};

enum class ShuffleMethod {
  kCopy,         // dst is src
  kCopyEntries,  // entries of several vectors: one copy each
  kPermute,      // a program for all entries together
  kTranspose,    // entries of an axis too long for a program
};

// Tiles of kTranspose, in entries of dst: so many that lie together by so many apart.
constexpr int64_t kTransposeTileU = 32, kTransposeTileV = 256;

// A program and the memory it needs.
struct ShuffleProgramData {
  std::vector<ShuffleVector> vectors;
  std::vector<int64_t> srcs;
  std::vector<uint8_t> controls;
  int64_t stride = 0;
  int64_t rows_at_once = 0;  // logical rows in a row of the program
  PermuteKernel run = nullptr;

  ShuffleProgram view() const {
    return {vectors.data(), static_cast<int64_t>(vectors.size()), srcs.data(), controls.data(),
            stride};
  }
};

// Immutable once made; safe to run on many threads.
struct ShufflePlan {
  ShuffleDesc desc;
  ShuffleMethod method = ShuffleMethod::kCopy;
  // The work is cut into units: bytes of a copy, entries of kCopyEntries, tiles of the
  // others.
  int64_t units = 0;
  int64_t tasks = 0;
  // kPermute: an image is `rows` rows, a tile `tile_rows` of them (the last tile of an
  // image takes up to program.rows_at_once more).
  ShuffleProgramData program;
  int64_t images = 0, image_bytes = 0;
  int64_t rows = 0, tile_rows = 0, tiles = 0;
};

// Returns an empty string, or one line that names what is wrong. Sizes of zero are
// legal and give no task.
std::string MakeShufflePlan(const ShuffleDesc& desc, Isa isa, ShufflePlan* plan);

// src and dst must not overlap.
void RunShuffle(const ShufflePlan& plan, const void* src, void* dst, ThreadPool& pool);

}  // namespace bd
