// Weights of bfloat16 and of bytes in the order in which register tiles read them
// (low_precision_kernel.h): [dword of K][columns], each dword the numbers of 2 or 4 rows of B.
#pragma once

#include <cstdint>
#include <cstring>

#include "cc/base/data_type.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {

// x as bfloat16, to nearest, ties to even; NaN stays one.
inline Bfloat16 RoundToBfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// Element i of numbers of `type` as it is packed for `family`: s8 for kInt8 and, widened, for
// kWords; bf16, or f32 which is rounded, for kBf16.
inline int8_t PackedNumber(DataType, const void* data, int64_t i, int8_t) {
  return static_cast<const int8_t*>(data)[i];
}
inline int16_t PackedNumber(DataType, const void* data, int64_t i, int16_t) {
  return static_cast<const int8_t*>(data)[i];
}
inline uint16_t PackedNumber(DataType type, const void* data, int64_t i, uint16_t) {
  if (type == DataType::bf16) return static_cast<const uint16_t*>(data)[i];
  return RoundToBfloat16(static_cast<const float*>(data)[i]).bits;
}

// Element i of such, as a float.
inline float PackedBfloat16(DataType type, const void* data, int64_t i) {
  const uint32_t bits = uint32_t{PackedNumber(type, data, i, uint16_t{})} << 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

template <typename Number, typename IndexOf>
void PackDwords(DataType type, const void* data, int64_t rows, int64_t columns,
                const IndexOf& index_of, Number* out, int32_t* sums) {
  constexpr int64_t kPer = 4 / sizeof(Number);
  for (int64_t k0 = 0; k0 < rows; k0 += kPer) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = k0; k < k0 + kPer; ++k) {
        const int64_t i = k < rows ? index_of(k, c) : -1;
        const Number number = i < 0 ? Number{0} : PackedNumber(type, data, i, Number{});
        if (sums != nullptr) sums[c] += static_cast<int32_t>(number);
        *out++ = number;
      }
    }
  }
}

// Rows of `columns` columns, where index_of(row, column) is the element's place in `data`, or -1
// for a zero. Adds each column's numbers to sums, if not null (bytes only).
template <typename IndexOf>
void PackLowPrecision(TileFamily family, DataType type, const void* data, int64_t rows,
                      int64_t columns, const IndexOf& index_of, float* out, int32_t* sums) {
  if (family == TileFamily::kInt8) {
    PackDwords(type, data, rows, columns, index_of, As<int8_t>(out), sums);
  } else if (family == TileFamily::kWords) {
    PackDwords(type, data, rows, columns, index_of, As<int16_t>(out), sums);
  } else {
    PackDwords(type, data, rows, columns, index_of, As<uint16_t>(out), nullptr);
  }
}

// Sums of so many products of bytes and more may be no int32: (2^31 - 1) / (255 * 127).
constexpr int64_t kMostInt8Products = 66311;

// What the tiles of a panel of bytes need beside its weights: of columns [first, first + columns),
// of which [0, most) are there, the int32 at which sums begin and what they are multiplied by.
struct Int8Columns {
  alignas(64) float scale[kMaxTileBlocks * kBlock];
  alignas(64) int32_t start[kMaxTileBlocks * kBlock];

  // `sums` of the panel's columns; `scales` of B from the panel's first column on.
  void Bind(const Quantization& a, const int32_t* sums, const float* scales, int64_t valid,
            int64_t columns) {
    for (int64_t c = 0; c < columns; ++c) {
      scale[c] = c < valid ? a.scale * scales[c] : 0.f;
      start[c] = -a.zero_point * sums[c];
    }
  }
};

}  // namespace bd
