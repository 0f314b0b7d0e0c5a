// The conversions between float and every data type by their definition, for tests.
#ifndef CC_SIMD_CONVERT_CONVERT_REF_H_
#define CC_SIMD_CONVERT_CONVERT_REF_H_

#include <cstdint>

#include "cc/base/data_type.h"

namespace bd {

// Element i of an array of `dtype`, as the nearest float.
float LoadAsFloatRef(DataType dtype, const void* array, int64_t i);

// array[i] = value, rounded and saturated as cc/simd/convert/convert.h states.
void StoreFloatRef(DataType dtype, float value, void* array, int64_t i);

}  // namespace bd

#endif  // CC_SIMD_CONVERT_CONVERT_REF_H_
