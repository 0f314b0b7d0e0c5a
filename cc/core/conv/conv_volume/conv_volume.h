// 3-D convolution of volumes that lie as slices, one image each: [volumes * depth, c, h, w].
//
//   dst[d] = sum over k of conv(src[d sd + k - pad_front], weights[k])
//
// In blocks, kd neighbouring slices of a volume are one image of kd times as many blocks, and the
// images of neighbouring outputs are sd slices apart: they overlap, and nothing is copied. So a 3-D
// convolution is a 2-D one of kd * C channels, with all algorithms of that. A volume that is padded
// along the depth is copied first, between slices of zeros. Of a plain source with few channels the
// kd slices are put together pixel by pixel.
#pragma once

#include <cstdint>
#include <string>

#include "cc/core/conv/conv.h"

namespace bd {

struct ConvVolumeDesc {
  int64_t volumes = 1, depth = 1, out_depth = 1;
  int64_t kd = 1, sd = 1, pad_front = 0;
  ConvDesc slice;  // the same along height and width, of one group; src and dst hold all slices

  int64_t weights_bytes() const {
    return kd * slice.kh() * slice.kw() * slice.ic() * slice.oc() * int64_t{sizeof(float)};
  }
};

struct ConvVolumePlan {
  ConvVolumeDesc desc;
  ConvPlan conv;             // of the out_depth images of a volume
  bool gathers = false;      // a plain source: images are put together in scratch
  int64_t padded_depth = 0;  // slices of the copy of a volume, zeros included; 0: it is not copied
  int64_t src_slice = 0, dst_slice = 0;  // floats
  ScratchPiece<float> src;               // gathered or padded
  ScratchPiece<char> scratch_of_conv;
  ScratchBook scratch;

  bool empty() const { return desc.volumes == 0 || conv.empty(); }
};

// Fills *plan; returns an empty string or one line saying what is wrong.
std::string MakeConvVolumePlan(const ConvVolumeDesc& desc, Isa isa, int threads,
                               ConvVolumePlan* plan);

// Weights [kd, kh, kw, ic, oc], packed as HWIO whose source channels are those of kd slices;
// `packed` holds plan.conv.packed_bytes, 64-byte aligned.
void PackConvVolumeWeights(const ConvVolumePlan& plan, const float* weights, float* packed,
                           ThreadPool& pool);

// Buffers as for RunConv.
void RunConvVolume(const ConvVolumePlan& plan, const ConvBuffers& buffers, ThreadPool& pool);

}  // namespace bd
