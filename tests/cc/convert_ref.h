// The conversions between float and every data type by their definition, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cc/base/data_type.h"
#include "cc/base/quantization.h"

namespace bd {
namespace {

// A float of 16 bits: a sign, the exponent, `mantissa` bits, the least exponent of a
// normal number.
struct Form {
  int mantissa, least_exponent;
};
constexpr Form kBfloat16 = {7, -126}, kFloat16 = {10, -14};

uint16_t Encode(Form form, float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int32_t infinity = 0x7fff >> form.mantissa << form.mantissa;
  if (std::isnan(value)) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint32_t payload = (bits & 0x7fffff) >> (23 - form.mantissa);
    return static_cast<uint16_t>(sign | infinity | 1 << (form.mantissa - 1) | payload);
  }
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  const int exponent = std::max(std::ilogb(magnitude), form.least_exponent);
  const double units = std::nearbyint(std::ldexp(magnitude, form.mantissa - exponent));
  const double code = std::ldexp(exponent - form.least_exponent, form.mantissa) + units;
  return static_cast<uint16_t>(sign | std::min(infinity, static_cast<int32_t>(code)));
}

float Decode(Form form, uint16_t code) {
  const int magnitude = code & 0x7fff, mantissa = magnitude & ((1 << form.mantissa) - 1);
  const int exponent = magnitude >> form.mantissa;
  double value;
  if (exponent == 0x7fff >> form.mantissa) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  } else {
    const int hidden = exponent == 0 ? 0 : 1 << form.mantissa;
    value = std::ldexp(mantissa + hidden,
                       std::max(exponent - 1, 0) + form.least_exponent - form.mantissa);
  }
  return static_cast<float>(code & 0x8000 ? -value : value);
}

// The values of all codes.
std::vector<float> Decoded(Form form) {
  std::vector<float> values(1 << 16);
  for (int code = 0; code < 1 << 16; ++code)
    values[code] = Decode(form, static_cast<uint16_t>(code));
  return values;
}

float ToFloat(float value) { return value; }
float ToFloat(Bfloat16 value) {
  static const std::vector<float> values = Decoded(kBfloat16);
  return values[value.bits];
}
float ToFloat(Float16 value) {
  static const std::vector<float> values = Decoded(kFloat16);
  return values[value.bits];
}
template <typename Integer>
float ToFloat(Integer value) {
  return static_cast<float>(value);
}

void FromFloat(float value, float* stored) { *stored = value; }
void FromFloat(float value, Bfloat16* stored) { stored->bits = Encode(kBfloat16, value); }
void FromFloat(float value, Float16* stored) { stored->bits = Encode(kFloat16, value); }
template <typename Integer>
void FromFloat(float value, Integer* stored) {
  using Limits = std::numeric_limits<Integer>;
  const double rounded = std::isnan(value) ? 0 : std::nearbyint(static_cast<double>(value));
  const double within = std::min<double>(std::max<double>(rounded, Limits::min()), Limits::max());
  *stored = static_cast<Integer>(within);
}

}  // namespace

// Element i of an array of `dtype`, as the nearest float.
inline float LoadAsFloatRef(DataType dtype, const void* array, int64_t i) {
  switch (dtype) {
#define BD_LOAD(name, Stored, text) \
  case DataType::name:              \
    return ToFloat(static_cast<const Stored*>(array)[i]);
    BD_DATA_TYPES(BD_LOAD)
#undef BD_LOAD
  }
  return 0;
}

// array[i] = value, rounded and saturated as cc/simd/convert/convert.h states.
inline void StoreFloatRef(DataType dtype, float value, void* array, int64_t i) {
  switch (dtype) {
#define BD_STORE(name, Stored, text) \
  case DataType::name:               \
    return FromFloat(value, static_cast<Stored*>(array) + i);
    BD_DATA_TYPES(BD_STORE)
#undef BD_STORE
  }
}

// What `stored` stands for, and the way back.
inline float Dequantized(const Quantization& from, float stored) {
  return from == Quantization() ? stored : from.scale * (stored - from.zero_point);
}
inline float Quantized(const Quantization& to, float value) {
  if (to == Quantization()) return value;
  const float steps = value * (1.f / to.scale);
  return std::isnan(steps) ? to.zero_point : std::nearbyint(steps) + to.zero_point;
}

// Element i, and the way back; only of uint8 `q` counts.
inline float LoadRealRef(DataType type, const Quantization& q, const void* array, int64_t i) {
  const float stored = LoadAsFloatRef(type, array, i);
  return type == DataType::u8 ? Dequantized(q, stored) : stored;
}
inline void StoreRealRef(DataType type, const Quantization& q, float x, void* array, int64_t i) {
  StoreFloatRef(type, type == DataType::u8 ? Quantized(q, x) : x, array, i);
}

// Integers from `least` to `most`.
inline void FillDrawn(std::mt19937& rng, DataType type, int64_t count, int least, int most,
                      void* array) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t x = static_cast<int64_t>(rng() >> 4) % (most - least + 1) + least;
    StoreFloatRef(type, static_cast<float>(x), array, i);
  }
}

}  // namespace bd
