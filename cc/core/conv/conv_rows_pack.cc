// Compresses the weights of inner products of few rows:
//
//   [group] of conv_compressed_rows_kernel.h, [groups + 1] where the weights left out
//   of each group start, [weights left out]
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "cc/core/conv/conv_rows.h"

namespace bd {
namespace {

constexpr int64_t kWeightsPerLeftOut = 512;  // each costs as much time as ten weights read

int64_t MostLeftOut(const ConvDesc& d) { return d.ic * d.oc / kWeightsPerLeftOut; }

int64_t IndexFloats(int64_t groups) { return CeilDiv(groups + 1, kBlock) * kBlock; }

// The powers of two of one panel's columns, and what follows from them.
struct Scales {
  alignas(64) float scale[kPanel], inverse[kPanel], least[kPanel];

  explicit Scales(const float* largest) {
    for (int c = 0; c < kPanel; ++c) {
      uint32_t bits;
      std::memcpy(&bits, largest + c, sizeof(bits));
      const int exponent = static_cast<int>(bits >> 23);
      const int shift = std::max(exponent - kKeptExponents, 0);
      scale[c] = std::ldexp(1.f, shift);
      inverse[c] = std::ldexp(1.f, -shift);
      least[c] = std::ldexp(1.f, shift - 126);
    }
  }
};

// The weights of one group while it is compressed.
class GroupPacker {
 public:
  // `left` counts how many more may be left out, in all groups.
  GroupPacker(const ConvPlan& plan, const OutputGroup& g, const float* hwio, float* out,
              std::atomic<int64_t>* left)
      : kernels_(CompressedRowsKernelsFor(plan.isa)),
        d_(plan.desc),
        panels_(static_cast<int>(g.blocks)),
        first_column_(g.first_block * kPanel),
        weights_(hwio + first_column_),
        out_(out),
        left_(left) {}

  // Appends to *list; false where the weights cannot be compressed.
  bool Run(std::vector<LeftOut>* list) {
    std::vector<Scales> scales;
    for (int p = 0; p < panels_; ++p) {
      alignas(64) float largest[kPanel];
      if (!kernels_.largest(weights_ + p * kPanel, d_.oc, d_.ic, Columns(p), largest)) return false;
      scales.emplace_back(largest);
      std::memcpy(out_ + p * kPanel, scales[p].scale, sizeof(scales[p].scale));
    }
    float* block = out_ + panels_ * kPanel;
    for (int64_t k = 0; k < d_.ic; k += kCompressedRows) {
      const int rows = static_cast<int>(std::min<int64_t>(kCompressedRows, d_.ic - k));
      for (int p = 0; p < panels_; ++p, block += kCompressedWords) {
        const float* at = weights_ + k * d_.oc + p * kPanel;
        const CompressArgs args = {
            at, d_.oc, rows, Columns(p), scales[p].least, scales[p].inverse, block};
        if (kernels_.compress(args) && !List(k, p, args, list)) return false;
      }
    }
    return true;
  }

 private:
  int Columns(int panel) const {
    return static_cast<int>(std::min<int64_t>(kPanel, d_.oc - first_column_ - panel * kPanel));
  }

  bool List(int64_t k, int panel, const CompressArgs& a, std::vector<LeftOut>* list) {
    for (int r = 0; r < a.rows; ++r) {
      for (int c = 0; c < a.columns; ++c) {
        const float value = a.weights[r * a.stride + c];
        uint32_t bits, least;
        std::memcpy(&bits, &value, sizeof(bits));
        std::memcpy(&least, a.least + c, sizeof(least));
        const uint32_t magnitude = bits & 0x7fffffff;
        if (magnitude == 0 || magnitude >= least) continue;
        if (left_->fetch_sub(1, std::memory_order_relaxed) <= 0) return false;
        const int64_t column = first_column_ + panel * kPanel + c;
        list->push_back({static_cast<int32_t>(k + r), static_cast<int32_t>(column), value});
      }
    }
    return true;
  }

  const CompressedRowsKernels& kernels_;
  const ConvDesc& d_;
  const int panels_;
  const int64_t first_column_;
  const float* const weights_;
  float* const out_;
  std::atomic<int64_t>* const left_;
};

}  // namespace

int64_t CompressedGroupFloats(int64_t ic, int64_t panels) {
  return panels * (kPanel + CeilDiv(ic, kCompressedRows) * kCompressedWords);
}

int64_t LeftOutFloats(const ConvDesc& d, int64_t groups) {
  return IndexFloats(groups) + MostLeftOut(d) * static_cast<int64_t>(sizeof(LeftOut) / 4);
}

LeftOutRange LeftOutOf(const ConvPlan& plan, const float* packed, int64_t group) {
  const int64_t groups = static_cast<int64_t>(plan.groups.size());
  const float* index = packed + plan.packed_floats - LeftOutFloats(plan.desc, groups);
  int32_t range[2];
  std::memcpy(range, index + group, sizeof(range));
  const auto* list = reinterpret_cast<const LeftOut*>(index + IndexFloats(groups));
  return {list + range[0], range[1] - range[0]};
}

bool CompressRows(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const int64_t groups = static_cast<int64_t>(plan.groups.size());
  std::atomic<int64_t> left(MostLeftOut(plan.desc));
  std::atomic<bool> fits(true);
  std::vector<std::vector<LeftOut>> lists(groups);
  pool.ParallelFor(groups, [&](int64_t g, int) {
    if (!fits.load(std::memory_order_relaxed)) return;
    const OutputGroup& group = plan.groups[g];
    GroupPacker packer(plan, group, hwio, packed + group.weights_offset, &left);
    if (!packer.Run(&lists[g])) fits.store(false, std::memory_order_relaxed);
  });
  if (!fits.load()) return false;
  float* index = packed + plan.packed_floats - LeftOutFloats(plan.desc, groups);
  float* entries = index + IndexFloats(groups);
  int32_t start = 0;
  for (int64_t g = 0; g < groups; ++g) {
    std::memcpy(index + g, &start, sizeof(start));
    const std::vector<LeftOut>& list = lists[g];
    std::memcpy(entries + start * (sizeof(LeftOut) / 4), list.data(),
                list.size() * sizeof(LeftOut));
    start += static_cast<int32_t>(list.size());
  }
  std::memcpy(index + groups, &start, sizeof(start));
  return true;
}

}  // namespace bd
