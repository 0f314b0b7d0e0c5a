#include "cc/base/memory/slabs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace bd {
namespace {

constexpr size_t kKilobyte = 1024;

uintptr_t SlabOf(const void* data) { return reinterpret_cast<uintptr_t>(data) / Slabs::kSlab; }

TEST(Slabs, BuffersShareOneSlabUntilItIsFull) {
  Slabs slabs;
  char* const first = static_cast<char*>(slabs.Take(512 * kKilobyte));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(SlabOf(first) * Slabs::kSlab, reinterpret_cast<uintptr_t>(first));
  void* const second = slabs.Take(1024 * kKilobyte);
  EXPECT_EQ(second, first + 512 * kKilobyte);
  void* const third = slabs.Take(1024 * kKilobyte);
  EXPECT_NE(SlabOf(third), SlabOf(first));
  void* const fourth = slabs.Take(512 * kKilobyte);  // The range that is left of the first slab.
  EXPECT_EQ(SlabOf(fourth), SlabOf(first));
  EXPECT_EQ(slabs.free_bytes(), 1024 * kKilobyte);
  slabs.Return(fourth, 512 * kKilobyte);
  slabs.Return(third, 1024 * kKilobyte);
  slabs.Return(first, 512 * kKilobyte);
  EXPECT_EQ(slabs.free_bytes(), 1024 * kKilobyte);  // The third's slab went back.
  slabs.Return(second, 1024 * kKilobyte);
  EXPECT_EQ(slabs.free_bytes(), 0u);
}

TEST(Slabs, FreeNeighboursBecomeOneRange) {
  Slabs slabs;
  std::vector<char*> parts;
  for (int i = 0; i < 4; ++i) {
    parts.push_back(static_cast<char*>(slabs.Take(256 * kKilobyte)));
  }
  slabs.Return(parts[0], 256 * kKilobyte);
  slabs.Return(parts[2], 256 * kKilobyte);
  slabs.Return(parts[1], 256 * kKilobyte);
  EXPECT_EQ(slabs.Take(768 * kKilobyte), parts[0]);
}

// Ranges at the ends of slabs that happen to be neighbours in memory stay apart.
TEST(Slabs, NoBufferReachesIntoASecondSlab) {
  Slabs slabs;
  std::vector<void*> whole;
  for (int i = 0; i < 16; ++i) whole.push_back(slabs.Take(Slabs::kSlab - 64));
  for (void* data : whole) {
    EXPECT_EQ(SlabOf(data), SlabOf(static_cast<char*>(data) + Slabs::kSlab - 65));
    slabs.Return(data, Slabs::kSlab - 64);
  }
  EXPECT_EQ(slabs.free_bytes(), 0u);
}

// Every thread fills its buffers with a number of its own, which others would overwrite.
TEST(Slabs, ThreadsTakeAndReturnAtOnce) {
  Slabs slabs;
  const auto work = [&slabs](int thread) {
    std::mt19937 random(thread);
    std::vector<std::pair<unsigned char*, size_t>> held;
    for (int turn = 0; turn < 400; ++turn) {
      const size_t bytes = 64 * (1 + random() % 2000);
      unsigned char* const data = static_cast<unsigned char*>(slabs.Take(bytes));
      memset(data, thread, bytes);
      held.emplace_back(data, bytes);
      if (held.size() < 8) continue;
      std::swap(held[random() % held.size()], held.back());
      const auto [old, size] = held.back();
      held.pop_back();
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(old[i], thread);
      slabs.Return(old, size);
    }
    for (const auto& [data, bytes] : held) slabs.Return(data, bytes);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(slabs.free_bytes(), 0u);
}

}  // namespace
}  // namespace bd
