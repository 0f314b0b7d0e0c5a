#include "cc/base/pack_count.h"

#include <atomic>

namespace bd {
namespace {

std::atomic<int64_t> packs{0};

}  // namespace

void CountPack() { packs.fetch_add(1, std::memory_order_relaxed); }
int64_t PackCount() { return packs.load(std::memory_order_relaxed); }

}  // namespace bd
