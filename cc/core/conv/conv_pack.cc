// HWIO weights -> the order the kernels read them in; channel tails are zero.
//
//   kTile       [group][icb][kh][kw][ic in block][block of group][16]
//   kPlainTile  [group][kh][kw][ic][block of group][16]
//   kDot        [icb][kh][kw][oc][16 lanes of ic]
//   kDepthwise  [icb][kh][kw][16]
//
// The others have files of their own: conv_winograd_pack.cc, conv_rows_pack.cc.
#include <algorithm>
#include <cstring>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_rows.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/conv/conv_winograd.h"

namespace bd {
namespace {

// Weight of output channel o at source channel c (of all ic), zero where o's
// group does not see c.
struct Hwio {
  const float* data;
  int64_t ic_group, oc_group, oc;

  float At(int64_t tap, int64_t c, int64_t o) const {
    if (o >= oc || c / ic_group != o / oc_group) return 0.f;
    return data[(tap * ic_group + c % ic_group) * oc + o];
  }
};

void PackGroup(const ConvPlan& plan, const Hwio& w, const OutputGroup& g, float* out) {
  const ConvDesc& d = plan.desc;
  const int64_t taps = d.kh * d.kw;
  const int64_t lanes = g.blocks * kBlock, o0 = g.first_block * kBlock;
  auto put_row = [&](int64_t tap, int64_t c) {
    if (d.groups == 1) {
      const int64_t valid = std::min(lanes, d.oc - o0);
      std::memcpy(out, w.data + (tap * d.ic + c) * d.oc + o0, valid * sizeof(float));
      std::fill(out + valid, out + lanes, 0.f);
    } else {
      for (int64_t i = 0; i < lanes; ++i) out[i] = w.At(tap, c, o0 + i);
    }
    out += lanes;
  };
  if (plan.packing.form == ConvForm::kPlainTile) {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t c = 0; c < d.ic; ++c) put_row(t, c);
    }
    return;
  }
  for (int64_t b = g.icb_begin; b < g.icb_end; ++b) {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t c = b * kBlock; c < std::min(d.ic, (b + 1) * kBlock); ++c) put_row(t, c);
    }
  }
}

// One source block of the forms whose lanes are source channels.
void PackLanes(const ConvPlan& plan, const Hwio& w, int64_t b, float* out) {
  const ConvDesc& d = plan.desc;
  const bool depthwise = plan.packing.form == ConvForm::kDepthwise;
  const int64_t rows = depthwise ? 1 : d.oc;
  for (int64_t t = 0; t < d.kh * d.kw; ++t) {
    for (int64_t o = 0; o < rows; ++o) {
      for (int64_t i = 0; i < kBlock; ++i) {
        const int64_t c = b * kBlock + i;
        *out++ = c < d.ic ? w.At(t, c, depthwise ? c : o) : 0.f;
      }
    }
  }
}

}  // namespace

bool PackConvWeights(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                     const float* src) {
  if (plan.packing.form == ConvForm::kCompressedRows) {
    return CompressRows(plan, hwio, packed, pool);
  }
  if (plan.packing.form == ConvForm::kWinograd) {
    PackWinograd(plan, hwio, packed, pool);
    return true;
  }
  const ConvDesc& d = plan.desc;
  const Hwio w{hwio, d.ic / d.groups, d.oc / d.groups, d.oc};
  const ConvForm form = plan.packing.form;
  if (form == ConvForm::kDot || form == ConvForm::kDepthwise) {
    const int64_t block = plan.packed_floats / std::max<int64_t>(1, plan.icb);
    for (int64_t b = 0; b < plan.icb; ++b) PackLanes(plan, w, b, packed + b * block);
    return true;
  }
  const bool paired = plan.packing.paired;
  const int exponent = paired ? PairedExponentOf(plan, src) : 0;
  if (paired) {
    float* kept = packed + PairedTrailerOf(plan).exponent;
    std::fill(kept, kept + kBlock, 0.f);
    *kept = static_cast<float>(exponent);
  }
  pool.ParallelFor(static_cast<int64_t>(plan.groups.size()), [&](int64_t g, int) {
    PackGroup(plan, w, plan.groups[g], packed + plan.groups[g].weights_offset);
    if (paired) PackPairedGroup(plan, plan.groups[g], exponent, packed);
  });
  return true;
}

}  // namespace bd
