// The data types of tensors. A row here and its conversions in cc/simd/convert/convert.h are
// all that tensors of a new one need.
//
// Kernel files include this header: no std containers.
#pragma once

#include <cstdint>

namespace bd {

// Stored bits; arithmetic happens in float.
struct Bfloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

// X(name, what one element is stored as, TensorFlow's and NumPy's name)
#define BD_DATA_TYPES(X)        \
  X(f32, float, "float32")      \
  X(bf16, Bfloat16, "bfloat16") \
  X(f16, Float16, "float16")    \
  X(s32, int32_t, "int32")      \
  X(s8, int8_t, "int8")         \
  X(u8, uint8_t, "uint8")

#define BD_DATA_TYPE_ENUMERATOR(name, Stored, text) name,
enum class DataType { BD_DATA_TYPES(BD_DATA_TYPE_ENUMERATOR) };
#undef BD_DATA_TYPE_ENUMERATOR

#define BD_COUNT_DATA_TYPE(name, Stored, text) +1
constexpr int kNumDataTypes = 0 BD_DATA_TYPES(BD_COUNT_DATA_TYPE);
#undef BD_COUNT_DATA_TYPE

// "float32", "bfloat16", ...
const char* DataTypeName(DataType dtype);

// Bytes of an element.
int64_t SizeOf(DataType dtype);

// Returns false, and leaves *dtype alone, for an unknown name.
bool ParseDataType(const char* name, DataType* dtype);

}  // namespace bd
