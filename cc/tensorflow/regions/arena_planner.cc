#include "cc/tensorflow/regions/arena_planner.h"

#include <algorithm>

namespace bd {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t End(const MemoryBlock& block) { return block.offset + Aligned(block.bytes); }

}  // namespace

// The blocks of the step that needs most memory first, so that nothing comes between them, then
// those of the next; of one step the largest first. Each as low as those placed before allow.
int64_t PlaceBlocks(std::vector<MemoryBlock>* blocks) {
  struct Candidate {
    MemoryBlock* block;
    int64_t most;  // bytes needed at any of its steps
  };
  std::vector<int64_t> needed;
  for (const MemoryBlock& block : *blocks) {
    needed.resize(std::max<size_t>(needed.size(), block.end + 1));
    for (int step = block.begin; step <= block.end; ++step) needed[step] += Aligned(block.bytes);
  }
  std::vector<Candidate> order;
  for (MemoryBlock& block : *blocks) {
    const auto first = needed.begin() + block.begin, last = needed.begin() + block.end;
    order.push_back({&block, *std::max_element(first, last + 1)});
  }
  std::stable_sort(order.begin(), order.end(), [](const Candidate& a, const Candidate& b) {
    return a.most != b.most ? a.most > b.most : a.block->bytes > b.block->bytes;
  });
  std::vector<const MemoryBlock*> placed;  // by offset
  int64_t total = 0;
  for (const Candidate& candidate : order) {
    MemoryBlock* const block = candidate.block;
    block->offset = 0;
    for (const MemoryBlock* other : placed) {
      if (other->end < block->begin || block->end < other->begin) continue;
      if (block->offset + block->bytes <= other->offset) break;
      block->offset = std::max(block->offset, End(*other));
    }
    const auto later = std::upper_bound(
        placed.begin(), placed.end(), block->offset,
        [](int64_t offset, const MemoryBlock* other) { return offset < other->offset; });
    placed.insert(later, block);
    total = std::max(total, End(*block));
  }
  return total;
}

}  // namespace bd
