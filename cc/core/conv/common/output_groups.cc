#include "cc/core/conv/common/output_groups.h"

#include <algorithm>

#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

// Not where there are more channels than products in a sum, as in expansions: one of many groups
// would gain, and fusing with depthwise splits best where groups are even.
bool JoinsHalf(const ConvDesc& d, Isa isa) {
  const int64_t ocb = CeilDiv(d.oc(), kBlock);
  return d.groups == 1 && ocb > 1 && GemmKernelsFor(isa).joined_tile_pixels > 0 &&
         d.oc() <= d.ic() * d.kh() * d.kw() && d.oc() <= ocb * kBlock - kBlock / 2;
}

}  // namespace

OutputGroups MakeOutputGroups(const ConvDesc& d, Isa isa, int64_t channels, int64_t taps,
                              bool joins, int64_t per_dword) {
  OutputGroups groups;
  groups.step = GemmKernelsFor(isa).tile_blocks;
  if (d.groups > 1 && d.oc() / d.groups % (groups.step * kBlock) != 0) {
    groups.step = 1;  // a group of two blocks would straddle more of the source
  }
  groups.joins_half = joins && JoinsHalf(d, isa);
  const int64_t ocb = CeilDiv(d.oc(), kBlock), icb = CeilDiv(channels, kBlock);
  const int64_t ic_group = d.ic() / d.groups, oc_group = d.oc() / d.groups;
  for (int64_t first = 0, blocks; first < ocb; first += blocks) {
    const int64_t left = ocb - first;
    blocks = groups.joins_half && left == groups.step + 1 ? left : std::min(groups.step, left);
    OutputGroup g{first, blocks, 0, icb, groups.packed_floats};
    int64_t reach = channels;
    if (d.groups > 1 && d.src.blocked()) {
      const int64_t last_oc = std::min(d.oc(), (first + blocks) * kBlock) - 1;
      g.icb_begin = first * kBlock / oc_group * ic_group / kBlock;
      g.icb_end = CeilDiv((last_oc / oc_group + 1) * ic_group, kBlock);
      reach = std::min(d.ic(), g.icb_end * kBlock) - g.icb_begin * kBlock;
    }
    groups.widest_blocks = std::max(groups.widest_blocks, blocks);
    groups.packed_floats += CeilDiv(reach, per_dword) * taps * blocks * kBlock;
    groups.list.push_back(g);
  }
  return groups;
}

}  // namespace bd
