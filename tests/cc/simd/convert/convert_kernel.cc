#include "tests/cc/simd/convert/convert_kernel.h"

#include "cc/simd/convert/convert.h"

namespace bd::BD_ISA {
namespace {

template <typename T>
void LoadAll(const void* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) Store(dst + i, LoadAs(static_cast<const T*>(src) + i));
}

template <typename T>
void StoreAll(const float* src, void* dst, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) StoreAs(static_cast<T*>(dst) + i, Load(src + i));
}

#define BD_LOAD(name, Stored, text) LoadAll<Stored>,
#define BD_STORE(name, Stored, text) StoreAll<Stored>,

}  // namespace

constexpr ConvertKernels kConvertKernels = {{BD_DATA_TYPES(BD_LOAD)}, {BD_DATA_TYPES(BD_STORE)}};
#undef BD_LOAD
#undef BD_STORE

}  // namespace bd::BD_ISA
