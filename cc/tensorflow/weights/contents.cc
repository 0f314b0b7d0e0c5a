#include "cc/tensorflow/weights/contents.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace bd {
namespace {

uint64_t HashOf(const char* data, int64_t bytes) {
  constexpr int kLanes = 8;  // products that do not wait for each other
  constexpr int64_t kBlock = kLanes * sizeof(uint64_t);
  uint64_t lanes[kLanes] = {}, words[kLanes] = {};
  const auto add = [&] {
#pragma GCC unroll 8
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = MixHash(lanes[lane], words[lane]);
  };
  for (; bytes >= kBlock; bytes -= kBlock, data += kBlock) {
    memcpy(words, data, kBlock);
    add();
  }
  memcpy(words, data, bytes);
  add();
  uint64_t hash = 1;
  for (uint64_t lane : lanes) hash = MixHash(hash, lane);
  return hash;
}

}  // namespace

uint64_t MixHash(uint64_t hash, uint64_t value) {
  return ((hash << 29 | hash >> 35) ^ value) * 0x9e3779b97f4a7c15;
}

uint64_t HashOf(const void* data, int64_t bytes, ThreadPool& pool) {
  constexpr int64_t kChunk = 128 * 1024;
  const char* const first = static_cast<const char*>(data);
  std::vector<uint64_t> hashes((bytes + kChunk - 1) / kChunk);
  pool.ParallelFor(hashes.size(), [&](int64_t i, int) {
    hashes[i] = HashOf(first + i * kChunk, std::min(kChunk, bytes - i * kChunk));
  });
  return HashOf(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t));
}

}  // namespace bd
