#include "cc/base/memory/scratch_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace bd {
namespace {

TEST(ScratchPool, NoBytesAreNoBuffer) {
  ScratchPool pool;
  EXPECT_EQ(pool.Take(0).data(), nullptr);
  EXPECT_EQ(pool.idle_buffers(), 0u);
}

TEST(ScratchPool, WhatCannotBeHadIsNull) {
  ScratchPool pool;
  EXPECT_EQ(pool.Take(SIZE_MAX / 4).data(), nullptr);
  EXPECT_EQ(pool.idle_buffers(), 0u);
}

TEST(ScratchPool, TheNextExecutionGetsTheSameBuffer) {
  ScratchPool pool;
  void* first = pool.Take(1000).data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  for (size_t bytes : {1000, 1, 999}) EXPECT_EQ(pool.Take(bytes).data(), first);
  EXPECT_EQ(pool.idle_buffers(), 1u);
  EXPECT_EQ(pool.idle_bytes(), 1000u);
}

TEST(ScratchPool, ExecutionsAtOnceGetBuffersOfTheirOwn) {
  ScratchPool pool;
  {
    const ScratchPool::Lease a = pool.Take(64), b = pool.Take(64);
    EXPECT_NE(a.data(), b.data());
    EXPECT_EQ(pool.idle_buffers(), 0u);
  }
  EXPECT_EQ(pool.idle_buffers(), 2u);
}

TEST(ScratchPool, ALargerRequestReplacesAnIdleBuffer) {
  ScratchPool pool;
  for (size_t bytes = 64; bytes <= 64 << 16; bytes *= 2) pool.Take(bytes);
  EXPECT_EQ(pool.idle_buffers(), 1u);
  EXPECT_EQ(pool.idle_bytes(), 64u << 16);
}

TEST(ScratchPool, TheSmallestThatFitsIsTaken) {
  ScratchPool pool;
  void *small, *large;
  {
    const ScratchPool::Lease a = pool.Take(4096), b = pool.Take(100), c = pool.Take(200);
    large = a.data();
    small = c.data();
  }
  ASSERT_EQ(pool.idle_bytes(), 4096u + 100 + 200);
  EXPECT_EQ(pool.Take(150).data(), small);
  EXPECT_EQ(pool.Take(201).data(), large);
  EXPECT_EQ(pool.idle_bytes(), 4096u + 100 + 200);
}

TEST(ScratchPool, ABurstOfExecutionsIsNotKept) {
  ScratchPool pool;
  {
    std::vector<ScratchPool::Lease> leases;
    for (int i = 0; i < 32; ++i) leases.push_back(pool.Take(100));
  }
  EXPECT_EQ(pool.idle_buffers(), ScratchPool::kMostIdle);
}

TEST(ScratchPool, ALeaseMovesWithItsBuffer) {
  ScratchPool pool;
  ScratchPool::Lease lease = pool.Take(100);
  void* data = lease.data();
  ScratchPool::Lease other = std::move(lease);
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(pool.idle_buffers(), 0u);
  other = ScratchPool::Lease();
  EXPECT_EQ(pool.idle_buffers(), 1u);
}

// 32 threads with sizes of their own: nobody writes into another's buffer.
TEST(ScratchPool, ManyThreads) {
  ScratchPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&pool, t] {
      for (int run = 0; run < 200; ++run) {
        const size_t bytes = 64 + 61 * ((t * 7 + run * 13) % 50);
        const ScratchPool::Lease lease = pool.Take(bytes);
        auto* data = static_cast<unsigned char*>(lease.data());
        ASSERT_NE(data, nullptr);
        std::memset(data, t, bytes);
        std::this_thread::yield();
        for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.idle_buffers(), ScratchPool::kMostIdle);
}

}  // namespace
}  // namespace bd
