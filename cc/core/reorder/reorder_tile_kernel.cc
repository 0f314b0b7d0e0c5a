// Tiles are taken in blocks that stay in the L1 cache: for a transposition 16 x 16,
// read in runs along src and written in runs along dst. Conversions pass through
// a block of floats, so that each type needs one load and one store, not one kernel
// a pair.
#include <string.h>

#include "cc/core/reorder/reorder_kernel.h"
#include "cc/simd/convert/quantized.h"

namespace bd::BD_ISA {
namespace {

constexpr int64_t kSide = 16;
constexpr int64_t kFloats = kSide * kSide;

inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- Copies ----

template <int kVecs>
void CopyShortRuns(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, src += src_step, dst += dst_step) {
    for (int v = 0; v < kVecs; ++v) {
      const auto* from = reinterpret_cast<const __m128i*>(src) + v;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst) + v, _mm_loadu_si128(from));
    }
  }
}

// Blocks of 8 and of 16 elements are runs of 1, 2 or 4 vectors.
void CopyRuns(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t rows,
              size_t bytes) {
  if (bytes == 16) return CopyShortRuns<1>(src, src_step, dst, dst_step, rows);
  if (bytes == 32) return CopyShortRuns<2>(src, src_step, dst, dst_step, rows);
  if (bytes == 64) return CopyShortRuns<4>(src, src_step, dst, dst_step, rows);
  for (int64_t r = 0; r < rows; ++r) memcpy(dst + r * dst_step, src + r * src_step, bytes);
}

template <typename T>
void CopyElements(const T* src, T* dst, const ReorderTile& t, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      dst[r * t.rows.dst + c * t.cols.dst] = src[r * t.rows.src + c * t.cols.src];
    }
  }
}

// 16 x 16 elements through a block of their own: the lines of src may compete for the
// same ways of the cache.
template <typename T>
void Transpose16(const T* src, int64_t src_col, T* dst, int64_t dst_row) {
  T block[kSide][kSide];
  for (int64_t c = 0; c < kSide; ++c) memcpy(block[c], src + c * src_col, sizeof(block[c]));
  for (int64_t r = 0; r < kSide; ++r) {
    for (int64_t c = 0; c < kSide; ++c) dst[r * dst_row + c] = block[c][r];
  }
}

// Whole blocks of 4 x 4 elements of 4 bytes.
void Transpose4(const float* src, int64_t src_col, float* dst, int64_t dst_row, int64_t rows,
                int64_t cols) {
  for (int64_t c = 0; c < cols; c += 4) {
    for (int64_t r = 0; r < rows; r += 4) {
      const float* from = src + c * src_col + r;
      float* to = dst + r * dst_row + c;
      __m128 x0 = _mm_loadu_ps(from), x1 = _mm_loadu_ps(from + src_col);
      __m128 x2 = _mm_loadu_ps(from + 2 * src_col), x3 = _mm_loadu_ps(from + 3 * src_col);
      _MM_TRANSPOSE4_PS(x0, x1, x2, x3);
      _mm_storeu_ps(to, x0);
      _mm_storeu_ps(to + dst_row, x1);
      _mm_storeu_ps(to + 2 * dst_row, x2);
      _mm_storeu_ps(to + 3 * dst_row, x3);
    }
  }
}

// Up to 16 x 16 elements.
template <typename T>
void CopyBlock(const T* src, T* dst, const ReorderTile& t, int64_t rows, int64_t cols) {
  if (t.rows.src == 1 && t.cols.dst == 1) {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (rows % 4 == 0 && cols % 4 == 0) {
        return Transpose4(reinterpret_cast<const float*>(src), t.cols.src,
                          reinterpret_cast<float*>(dst), t.rows.dst, rows, cols);
      }
    } else if (rows == kSide && cols == kSide) {
      return Transpose16(src, t.cols.src, dst, t.rows.dst);
    }
  }
  CopyElements(src, dst, t, rows, cols);
}

template <typename T>
void Copy(const ReorderTile& t) {
  const T* src = static_cast<const T*>(t.src);
  T* dst = static_cast<T*>(t.dst);
  if (t.cols.src == 1 && t.cols.dst == 1) {
    constexpr int64_t kBytes = sizeof(T);
    return CopyRuns(reinterpret_cast<const char*>(src), t.rows.src * kBytes,
                    reinterpret_cast<char*>(dst), t.rows.dst * kBytes, t.rows.count,
                    t.cols.count * kBytes);
  }
  for (int64_t r = 0; r < t.rows.count; r += kSide) {
    for (int64_t c = 0; c < t.cols.count; c += kSide) {
      CopyBlock(src + r * t.rows.src + c * t.cols.src, dst + r * t.rows.dst + c * t.cols.dst, t,
                Least(kSide, t.rows.count - r), Least(kSide, t.cols.count - c));
    }
  }
}

// ---- Conversions ----

// A piece of a tile as floats, row after row.
struct Block {
  float* at;
  int64_t rows = 0, cols = 0;
};

// n floats, and perhaps some more up to a whole vector.
template <typename T>
inline void LoadRun(const Dequantizer& from, const T* src, float* run, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(run + i, from.Load(src + i));
  if (i < n) Store(run + i, from.LoadN(src + i, static_cast<int>(n - i)));
}

template <typename T>
inline void StoreRun(const Quantizer& to, const float* run, T* dst, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {  // bytes of four are packed together
    Vec four[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) four[v] = Load(run + i + v * kLanes);
    to.StoreFour(dst + i, four);
  }
  for (; i + kLanes <= n; i += kLanes) to.Store(dst + i, Load(run + i));
  const int left = static_cast<int>(n - i);
  if (left > 0) to.StoreN(dst + i, LoadN(run + i, left), left);
}

template <typename T>
void LoadBlock(const Dequantizer& from, const void* base, int64_t offset, int64_t row, int64_t col,
               Block* block) {
  const T* src = static_cast<const T*>(base) + offset;
  const int64_t rows = block->rows, cols = block->cols;
  if (col == 1 && row == cols) return LoadRun(from, src, block->at, rows * cols);
  if (col == 1) {
    for (int64_t r = 0; r < rows; ++r) LoadRun(from, src + r * row, block->at + r * cols, cols);
    return;
  }
  // A column is short: wherever it lies, it is brought together first.
  for (int64_t c = 0; c < cols; ++c) {
    T column[kSide];
    float run[kSide + kBlock];
    for (int64_t r = 0; r < rows; ++r) column[r] = src[r * row + c * col];
    LoadRun(from, column, run, rows);
    for (int64_t r = 0; r < rows; ++r) block->at[r * cols + c] = run[r];
  }
}

template <typename T>
void StoreBlock(const Quantizer& to, const Block& block, void* base, int64_t offset, int64_t row,
                int64_t col) {
  T* dst = static_cast<T*>(base) + offset;
  if (col == 1 && row == block.cols) return StoreRun(to, block.at, dst, block.rows * block.cols);
  for (int64_t r = 0; r < block.rows; ++r) {
    const float* run = block.at + r * block.cols;
    if (col == 1) {
      StoreRun(to, run, dst + r * row, block.cols);
    } else {
      T values[kSide + kLanes];
      StoreRun(to, run, values, block.cols);
      for (int64_t c = 0; c < block.cols; ++c) dst[r * row + c * col] = values[c];
    }
  }
}

void Scale(const float* scales, int64_t row, int64_t col, Block* block) {
  for (int64_t r = 0; r < block->rows; ++r) {
    float* run = block->at + r * block->cols;
    const float* factor = scales + r * row;
    if (col == 0) {
      for (int64_t c = 0; c < block->cols; ++c) run[c] *= *factor;
    } else {
      for (int64_t c = 0; c < block->cols; ++c) run[c] *= factor[c * col];
    }
  }
}

using LoadBlockFn = void (*)(const Dequantizer&, const void*, int64_t, int64_t, int64_t, Block*);
using StoreBlockFn = void (*)(const Quantizer&, const Block&, void*, int64_t, int64_t, int64_t);

#define BD_LOAD_BLOCK(name, Stored, text) LoadBlock<Stored>,
#define BD_STORE_BLOCK(name, Stored, text) StoreBlock<Stored>,
constexpr LoadBlockFn kLoad[] = {BD_DATA_TYPES(BD_LOAD_BLOCK)};
constexpr StoreBlockFn kStore[] = {BD_DATA_TYPES(BD_STORE_BLOCK)};
#undef BD_LOAD_BLOCK
#undef BD_STORE_BLOCK

// Whether a tile in memory lies there as a block does.
inline bool IsBlock(const ReorderTile& t, DataType type, int64_t row) {
  return type == DataType::f32 && (t.rows.count == 1 || row == t.cols.count);
}

// A tile that is only converted, floats from where they are, numbers to where floats are to be.
bool ConvertInPlace(const ReorderTile& t, const Dequantizer& from, const Quantizer& to) {
  if (t.cols.src != 1 || t.cols.dst != 1 || t.scales != nullptr || t.beta != 0) return false;
  if (IsBlock(t, t.src_type.dtype, t.rows.src)) {
    float* const src = static_cast<float*>(const_cast<void*>(t.src));
    kStore[static_cast<int>(t.dst_type.dtype)](to, {src, t.rows.count, t.cols.count}, t.dst, 0,
                                               t.rows.dst, 1);
    return true;
  }
  if (IsBlock(t, t.dst_type.dtype, t.rows.dst) && t.cols.count % kLanes == 0) {
    Block block = {static_cast<float*>(t.dst), t.rows.count, t.cols.count};
    kLoad[static_cast<int>(t.src_type.dtype)](from, t.src, 0, t.rows.src, 1, &block);
    return true;
  }
  return false;
}

void Convert(const ReorderTile& t) {
  const LoadBlockFn load = kLoad[static_cast<int>(t.src_type.dtype)];
  const LoadBlockFn load_dst = kLoad[static_cast<int>(t.dst_type.dtype)];
  const StoreBlockFn store = kStore[static_cast<int>(t.dst_type.dtype)];
  const Dequantizer from(t.src_type.quantization), from_dst(t.dst_type.quantization);
  const Quantizer to(t.dst_type.quantization);
  const bool runs = t.cols.src == 1 && t.cols.dst == 1;
  const int64_t most_cols = Least(t.cols.count, runs ? kFloats : kSide);
  const int64_t most_rows = runs ? kFloats / most_cols : kSide;
  if (ConvertInPlace(t, from, to)) return;
  alignas(64) float floats[kFloats + kBlock], old_floats[kFloats + kBlock];  // a vector of slack
  Block block = {floats}, old = {old_floats};
  for (int64_t r = 0; r < t.rows.count; r += most_rows) {
    for (int64_t c = 0; c < t.cols.count; c += most_cols) {
      block.rows = Least(most_rows, t.rows.count - r);
      block.cols = Least(most_cols, t.cols.count - c);
      load(from, t.src, r * t.rows.src + c * t.cols.src, t.rows.src, t.cols.src, &block);
      if (t.scales != nullptr) {
        const float* scales = t.scales + r * t.rows.scale + c * t.cols.scale;
        Scale(scales, t.rows.scale, t.cols.scale, &block);
      }
      const int64_t at = r * t.rows.dst + c * t.cols.dst;
      if (t.beta != 0) {
        old.rows = block.rows;
        old.cols = block.cols;
        load_dst(from_dst, t.dst, at, t.rows.dst, t.cols.dst, &old);
        const int64_t n = block.rows * block.cols;
        for (int64_t i = 0; i < n; ++i) block.at[i] += t.beta * old.at[i];
      }
      store(to, block, t.dst, at, t.rows.dst, t.cols.dst);
    }
  }
}

}  // namespace

constexpr ReorderTileKernels kReorderTileKernels = {{Copy<uint8_t>, Copy<uint16_t>, Copy<float>},
                                                    Convert};

}  // namespace bd::BD_ISA
