// What is known of this machine's caches.
#pragma once

#include <cstdint>

namespace bd {

// Of one core's L2 cache; 1 MB, that of a common server, where the system does not know.
int64_t L2CacheBytes();

}  // namespace bd
