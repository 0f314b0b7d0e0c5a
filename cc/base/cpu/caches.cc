#include "cc/base/cpu/caches.h"

#include <unistd.h>

namespace bd {

int64_t L2CacheBytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 1 << 20;
}

}  // namespace bd
