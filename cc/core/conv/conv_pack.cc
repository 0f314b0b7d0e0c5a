// HWIO weights -> the order the kernels read them in; channel tails are zero.
//
//   kTile       [group][icb][kh][kw][ic in block][block of group][16]
//   kPlainTile  [group][kh][kw][ic][block of group][16]
//   kDot        [icb][kh][kw][oc][16 lanes of ic]
//   kDepthwise  [icb][kh][kw][16]
//
// The others have files of their own: conv_winograd_pack.cc, conv_rows_driver.cc.
#include <algorithm>
#include <cstring>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_rows.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/conv/conv_winograd.h"

namespace bd {
namespace {

constexpr int64_t kTaskFloats = 32 << 10;  // packed weights worth a task

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

// Packs rows of B, a source channel and tap each, of one group.
class GroupPacker {
 public:
  GroupPacker(const ConvPlan& plan, const Hwio& w, const OutputGroup& g, float* out)
      : plan_(plan), d_(plan.desc), w_(w), g_(g), lanes_(g.blocks * kBlock), out_(out) {}

  // Source blocks [begin, end) of those that reach the group; of an NHWC source all taps of a
  // block's channels.
  void Run(int64_t begin, int64_t end) const {
    const int64_t taps = d_.kh * d_.kw;
    const bool plain = plan_.packing.form == ConvForm::kPlainTile;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t c0 = b * kBlock, count = std::min(d_.ic - c0, kBlock);
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t row = plain ? t * d_.ic + c0 : (b - g_.icb_begin) * kBlock * taps + t * count;
        for (int64_t c = 0; c < count; ++c) PutRow(t, c0 + c, out_ + (row + c) * lanes_);
      }
    }
  }

 private:
  void PutRow(int64_t tap, int64_t c, float* out) const {
    const int64_t o0 = g_.first_block * kBlock;
    if (d_.groups > 1) {
      for (int64_t i = 0; i < lanes_; ++i) out[i] = w_.At(tap, c, o0 + i);
      return;
    }
    const float* from = w_.data + (tap * d_.ic + c) * d_.oc + o0;
    for (int64_t left = d_.oc - o0, i = 0; i < lanes_; i += kBlock, left -= kBlock) {
      if (left >= kBlock) {
        std::memcpy(out + i, from + i, kBlock * sizeof(float));  // four vectors, inline
      } else {
        std::fill(std::copy_n(from + i, std::max<int64_t>(0, left), out + i), out + i + kBlock,
                  0.f);
      }
    }
  }

  const ConvPlan& plan_;
  const ConvDesc& d_;
  const Hwio& w_;
  const OutputGroup& g_;
  const int64_t lanes_;
  float* const out_;
};

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

void PackConvWeights(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                     const float* src) {
  if (plan.packed_floats == 0) return;
  if (plan.packing.as_is()) return PackFiniteNote(plan, hwio, packed, pool);
  if (plan.packing.form == ConvForm::kWinograd) return PackWinograd(plan, hwio, packed, pool);
  const ConvDesc& d = plan.desc;
  const Hwio w{hwio, d.ic / d.groups, d.oc / d.groups, d.oc};
  const ConvForm form = plan.packing.form;
  if (form == ConvForm::kDot || form == ConvForm::kDepthwise) {
    const int64_t block = plan.packed_floats / std::max<int64_t>(1, plan.icb);
    for (int64_t b = 0; b < plan.icb; ++b) PackLanes(plan, w, b, packed + b * block);
    return;
  }
  const bool paired = plan.packing.paired;
  const int exponent = paired ? PairedExponentOf(plan, src) : 0;
  if (paired) {
    float* kept = packed + PairedTrailerOf(plan).exponent;
    std::fill(kept, kept + kBlock, 0.f);
    *kept = static_cast<float>(exponent);
  }
  const int64_t groups = static_cast<int64_t>(plan.groups.size());
  const int64_t splits =  // of the source blocks of a group
      std::clamp<int64_t>(plan.packed_floats / std::max<int64_t>(1, groups) / kTaskFloats, 1,
                          std::max<int64_t>(1, plan.icb));
  pool.ParallelFor(groups * splits, [&](int64_t task, int) {
    const OutputGroup& g = plan.groups[task / splits];
    const int64_t split = task % splits, blocks = g.icb_end - g.icb_begin;
    GroupPacker(plan, w, g, packed + g.offset)
        .Run(g.icb_begin + blocks * split / splits, g.icb_begin + blocks * (split + 1) / splits);
  });
  if (!paired) return;
  pool.ParallelFor(
      groups, [&](int64_t g, int) { PackPairedGroup(plan, plan.groups[g], exponent, packed); });
}

}  // namespace bd
