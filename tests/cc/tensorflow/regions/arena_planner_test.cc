// Blocks in one buffer: never on each other while both are needed, and no larger than need be.
#include "cc/tensorflow/regions/arena_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace bd {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

void CheckPlaces(const std::vector<MemoryBlock>& blocks, int64_t total) {
  for (const MemoryBlock& a : blocks) {
    EXPECT_EQ(a.offset % 64, 0);
    EXPECT_GE(a.offset, 0);
    EXPECT_LE(a.offset + a.bytes, total);
    for (const MemoryBlock& b : blocks) {
      if (&a == &b || a.end < b.begin || b.end < a.begin) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    }
  }
}

int64_t MostNeeded(const std::vector<MemoryBlock>& blocks) {
  int64_t most = 0;
  for (const MemoryBlock& at : blocks) {
    int64_t needed = 0;
    for (const MemoryBlock& b : blocks) {
      if (b.begin <= at.begin && at.begin <= b.end) needed += Aligned(b.bytes);
    }
    most = std::max(most, needed);
  }
  return most;
}

TEST(PlaceBlocks, NothingTakesNothing) {
  std::vector<MemoryBlock> blocks;
  EXPECT_EQ(PlaceBlocks(&blocks), 0);
}

TEST(PlaceBlocks, AChainTakesItsLargestPair) {
  std::vector<MemoryBlock> blocks;
  for (int step = 0; step < 20; ++step) {
    blocks.push_back({step, step + 1, 6400 - 64 * step});
  }
  const int64_t total = PlaceBlocks(&blocks);
  CheckPlaces(blocks, total);
  EXPECT_EQ(total, 6400 + 6336);
}

TEST(PlaceBlocks, RandomBlocksDoNotMeet) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<MemoryBlock> blocks(1 + random() % 40);
    for (MemoryBlock& block : blocks) {
      block.begin = static_cast<int>(random() % 30);
      block.end = block.begin + static_cast<int>(random() % 6);
      block.bytes = 1 + random() % 5000;
    }
    const int64_t total = PlaceBlocks(&blocks);
    CheckPlaces(blocks, total);
    EXPECT_GE(total, MostNeeded(blocks));
    EXPECT_LE(total, 2 * MostNeeded(blocks));
  }
}

}  // namespace
}  // namespace bd
