// Contract between the driver of layer normalisation and its kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Some pixels of one image; src and dst are the addresses of channel 0 of the first of them.
struct LayerNormArgs {
  const float* src;
  float* dst;
  const float *gamma, *beta;
  int64_t pixels, channels;
  int64_t block_stride;  // floats from a block of 16 channels to the next; plain: not used
  float epsilon;
  bool centered;  // else the mean counts as 0
};

// Backward: likewise. dsrc may be ddst.
struct LayerNormGradArgs {
  const float *src, *ddst;
  float* dsrc;
  const float* gamma;
  float *dgamma, *dbeta;  // a multiple of 16 lanes, which the sums over the pixels are added to
  int64_t pixels, channels;
  int64_t block_stride, pixel_stride;
  bool blocked;  // lanes behind the last channel are there, and get zeros
  float epsilon;
  bool centered;  // else the mean counts as 0
};

struct LayerNormKernels {
  void (*blocked)(const LayerNormArgs& args);
  void (*plain)(const LayerNormArgs& args);
  void (*grad)(const LayerNormGradArgs& args);
};

BD_KERNEL_TABLE(LayerNormKernels)

}  // namespace bd
