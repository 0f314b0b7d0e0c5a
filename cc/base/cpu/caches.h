// What is known of this machine's caches.
#ifndef CC_BASE_CPU_CACHES_H_
#define CC_BASE_CPU_CACHES_H_

#include <cstdint>

namespace bd {

// Of one core's L2 cache; 1 MB, that of a common server, where the system does not know.
int64_t L2CacheBytes();

}  // namespace bd

#endif  // CC_BASE_CPU_CACHES_H_
