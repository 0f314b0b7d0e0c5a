// Hashes of what memory holds.
#pragma once

#include <cstdint>

#include "cc/base/threads/thread_pool.h"

namespace bd {

uint64_t MixHash(uint64_t hash, uint64_t value);

// Whatever changes in one word of 8 bytes changes the hash; other changes are missed once in 2^64.
uint64_t HashOf(const void* data, int64_t bytes, ThreadPool& pool);

}  // namespace bd
