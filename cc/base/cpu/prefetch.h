// Asking for a line of memory that will be written.
#pragma once

namespace bd {

// The line of `p` comes to this core as its own. What __builtin_prefetch(p, 1) becomes by
// default asks for it as a reader does; where another core has read the line since it was
// last written, the store still waits for that one to give it up. Static: kernel files
// share no inline function.
static inline __attribute__((always_inline)) void PrefetchToWrite(const float* p) {
  __asm__ volatile("prefetchw %0" : : "m"(*p));
}

}  // namespace bd
