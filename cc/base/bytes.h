// Memory as elements of a type. Buffers, packed weights and strips hold numbers of whatever type a
// plan says: plans and drivers that know the type say so here, and cast pointers nowhere else.
// Kernels cast where memory becomes a register's: through a function GCC 12 orders their
// instructions in other ways (tiles of few rows by bf16 took up to 3 % more of them).
#pragma once

#include <cstdint>

namespace bd {

// Of a stored type, or of bytes; T is const where P is.
template <typename T, typename P>
T* As(P* p) {
  return reinterpret_cast<T*>(p);
}

// The same pointer, so many bytes further; null stays null where there are none.
template <typename T>
T* BytesFrom(T* p, int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) + bytes);
}

inline bool IsAligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace bd
