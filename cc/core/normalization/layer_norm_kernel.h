// Contract between the driver of layer normalisation and its kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Some pixels of one image; all but rows of channels are the addresses of channel 0 of the first of
// them.
struct LayerNormArgs {
  const float* src;
  const float* gamma;
  int64_t pixels, channels;
  int64_t block_stride, pixel_stride;  // floats from 16 channels to the next, from pixel to pixel
  bool blocked;                        // lanes after the last channel are there, and get zeros
  float epsilon;
  bool centered;  // else the mean counts as 0
  // Forward; dst may be src.
  float* dst;
  const float* beta;
  // Backward; dsrc may be ddst.
  const float* ddst;
  float* dsrc;
  float *dgamma, *dbeta;  // a multiple of 16 lanes, which the sums over the pixels are added to
};

struct LayerNormKernels {
  void (*forward)(const LayerNormArgs& args);
  void (*backward)(const LayerNormArgs& args);
};

BD_KERNEL_TABLE(LayerNormKernels)

}  // namespace bd
