// Panels of output channels that register tiles compute, and the source they need.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/core/conv/common/conv_desc.h"

namespace bd {

struct OutputGroup {
  int64_t first_block, blocks;  // output blocks
  int64_t icb_begin, icb_end;   // source blocks that reach them
  int64_t offset;               // dwords into the packed weights
};

struct OutputGroups {
  std::vector<OutputGroup> list;
  int64_t step = 1;           // blocks of a group
  bool joins_half = false;    // the last group takes half a last block in, too
  int64_t widest_blocks = 0;  // of a group
  int64_t packed_floats = 0;  // of all, or dwords

  int64_t size() const { return static_cast<int64_t>(list.size()); }
  const OutputGroup& operator[](int64_t g) const { return list[g]; }
  // For PackKey.
  int64_t blocking() const { return step + (joins_half ? 16 : 0); }
};

// Every group with `taps` weights of each of its source channels, which are `channels` in all and
// of which a dword holds `per_dword`.
// joins: a half last block may share tiles with the block before it.
OutputGroups MakeOutputGroups(const ConvDesc& desc, Isa isa, int64_t channels, int64_t taps,
                              bool joins, int64_t per_dword = 1);

}  // namespace bd
