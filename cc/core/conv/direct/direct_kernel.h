// Contract between the direct driver and what it needs beside register tiles (cc/core/gemm).
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// dst[p][o] = bias[o] + sum over taps and lanes; oc <= kMaxDotChannels.
// weights: [tap][oc][16]; dst is dense. No register tile: of its 16 columns few would be used.
struct DotArgs {
  const float* src;
  const int64_t* tap_offsets;
  int64_t taps;
  const float* weights;
  int64_t px, oc;
  const float* bias;
  float* dst;
};

// Copies `px` pixels of a block from a source row to a strip:
// dst[p] = src[first + p * stride], zero where outside [0, size) or src null. `zero` is what zeros
// are among bytes.
struct GatherArgs {
  const void* src;
  void* dst;
  int64_t px, first, stride, size;
  uint8_t zero;
};

constexpr int kMaxDotChannels = 4;

struct DirectKernels {
  void (*dot)(const DotArgs&);
  void (*gather[3])(const GatherArgs&);     // of elements of 1, 2 and 4 bytes, by half of these
  void (*gather_words)(const GatherArgs&);  // of bytes, which become words of 16 bits
};

BD_KERNEL_TABLE(DirectKernels)

}  // namespace bd
