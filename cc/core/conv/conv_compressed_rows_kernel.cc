// Inner products of few rows from compressed weights; the contract is
// conv_compressed_rows_kernel.h. Expanding 8 vectors takes 38 instructions on AVX-512,
// less than half the time in which memory delivers them, and a thread reads one stream in
// order: one row of 25088 x 4096 (2 threads, huge pages, medians of 30 in turns) 10.4
// ms, plain weights in the same order 12.2, as they are, 16 rows side by side, 13.9.
#include "cc/core/conv/conv_compressed_rows_kernel.h"

#include "cc/core/conv/conv_rows_kernel.h"
#include "cc/simd/vec.h"

#define BD_UNROLL _Pragma("GCC unroll 8")

namespace bd::BD_ISA {
namespace {

constexpr int kShared = kCompressedRows - 1;  // words that hold a part of the last row

inline Vec Field(uint32_t bits) { return FromBits(SetInt(static_cast<int32_t>(bits))); }

template <int kBits>  // left, or right if negative; what comes in is to be masked
inline Vec Shifted(Vec v) {
  if constexpr (kBits >= 0) {
    return FromBits(ShiftLeft<kBits>(Bits(v)));
  } else {
    return FromBits(ShiftRight<-kBits>(Bits(v)));
  }
}

constexpr uint32_t kFree = 0x78000000;  // bits 27 to 30

// Word j holds bits 4 j to 4 j + 3 of the last row for j < 6, the sixth its bits 24 to
// 26 in bits 28 to 30 and its sign in bit 27.
template <int kWord>
inline Vec PartOfLast(Vec last) {
  if constexpr (kWord < 6) {
    return And(Shifted<27 - 4 * kWord>(last), Field(kFree));
  } else {
    return Or(And(Shifted<4>(last), Field(0x70000000)), And(Shifted<-4>(last), Field(0x08000000)));
  }
}

template <int kWord>
inline Vec LastFromPart(Vec word) {
  if constexpr (kWord < 6) {
    return And(Shifted<4 * kWord - 27>(word), Field(15u << 4 * kWord));
  } else {
    return Or(And(Shifted<-4>(word), Field(0x07000000)), And(Shifted<4>(word), Field(0x80000000)));
  }
}

template <int kWord = 0>
inline void Split(Vec* weights) {
  if constexpr (kWord < kShared) {
    weights[kWord] = Or(weights[kWord], PartOfLast<kWord>(weights[kShared]));
    Split<kWord + 1>(weights);
  }
}

// kLanes columns of a block. Prefetchers of Zen 4 lose a stream whose lines are touched out
// of order: 25088 x 4096 weights took 18.7 ms with each block backwards, 13.9 with its first
// two lines exchanged, and take 10.7.
template <int kWord = 0>
inline void ExpandLanes(const float* block, Vec scale, Vec last, Vec* weights) {
  if constexpr (kWord < kShared) {
    const Vec word = LoadInOrder(block + kWord * kPanel);
    weights[kWord] = Mul(And(word, Field(~kFree)), scale);
    const Vec part = LastFromPart<kWord>(word);
    ExpandLanes<kWord + 1>(block, scale, kWord == 0 ? part : Or(last, part), weights);
  } else {
    weights[kWord] = Mul(last, scale);
  }
}

void Expand(const float* block, const float* scale, float* weights) {
  for (int lane = 0; lane < kPanel; lane += kLanes) {
    Vec expanded[kCompressedRows];
    ExpandLanes(block + lane, Load(scale + lane), Zero(), expanded);
    for (int r = 0; r < kCompressedRows; ++r) Store(weights + r * kPanel + lane, expanded[r]);
  }
}

inline int LanesOf(int columns, int lane) {
  const int rest = columns - lane;
  return rest < 0 ? 0 : rest < kLanes ? rest : kLanes;
}

inline Vec Magnitude(Vec v) { return And(v, Field(0x7fffffff)); }

bool Largest(const float* weights, int64_t stride, int64_t rows, int columns, float* largest) {
  Vec most[kVecsPerBlock];
  for (Vec& v : most) v = Zero();
  bool fits = true;
  for (int64_t k = 0; k < rows; ++k, weights += stride) {
    BD_UNROLL
    for (int i = 0; i < kVecsPerBlock; ++i) {
      const int n = LanesOf(columns, i * kLanes);
      const float* at = weights + i * kLanes;
      const Vec w = Magnitude(n == kLanes ? Load(at) : n == 0 ? Zero() : LoadN(at, n));
      fits &= All(Less(w, Set1(kCompressedLimit)));
      most[i] = Max(w, most[i]);
    }
  }
  for (int i = 0; i < kVecsPerBlock; ++i) Store(largest + i * kLanes, most[i]);
  return fits;
}

bool Compress(const CompressArgs& a) {
  bool left_out = false;
  for (int lane = 0; lane < kPanel; lane += kLanes) {
    const int n = LanesOf(a.columns, lane);
    const Vec least = Load(a.least + lane), inverse = Load(a.inverse + lane);
    Vec weights[kCompressedRows], gone = Zero();
    for (int r = 0; r < kCompressedRows; ++r) {
      const bool there = r < a.rows && n > 0;
      const Vec w = there ? LoadN(a.weights + r * a.stride + lane, n) : Zero();
      const Mask small = Less(Magnitude(w), least);
      gone = Or(gone, Select(small, Magnitude(w), Zero()));
      weights[r] = Mul(Select(small, And(w, Field(0x80000000)), w), inverse);
    }
    Split(weights);
    for (int j = 0; j < kShared; ++j) Store(a.block + j * kPanel + lane, weights[j]);
    // As integers: floats may take subnormal ones for zero.
    alignas(64) float bits[kLanes];
    Store(bits, gone);
    for (int i = 0; i < kLanes; ++i) {
      int32_t word;
      __builtin_memcpy(&word, bits + i, sizeof(word));
      left_out |= word != 0;
    }
  }
  return left_out;
}

// Where a line is several vectors a block's lines are touched twice, which prefetchers do not
// follow: so many floats ahead they are asked for (Zen 3, AVX2, 25088 x 4096 in turns with reading
// alone: 1.19 of its time without, 1.03 so; 224 to 672 floats 1.08 to 1.03).
constexpr int64_t kAhead = 4 * kCompressedWords;

// Adds src[m][0 .. 7] times a block to the sums of its columns, [m][panels][16].
inline void MultiplyBlock(const float* src, int64_t src_stride, int64_t rows, const float* block,
                          const float* scale, float* sums, int64_t sums_stride) {
  if constexpr (kLanes < kPanel) {
    BD_UNROLL
    for (int i = 0; i < kShared; ++i) __builtin_prefetch(block + kAhead + i * kPanel);
  }
  for (int lane = 0; lane < kPanel; lane += kLanes) {
    Vec weights[kCompressedRows];
    ExpandLanes(block + lane, Load(scale + lane), Zero(), weights);
    for (int64_t m = 0; m < rows; ++m) {
      const float* x = src + m * src_stride;
      Vec sum = Load(sums + m * sums_stride + lane);
      BD_UNROLL
      for (int r = 0; r < kCompressedRows; ++r) sum = Fma(Set1(x[r]), weights[r], sum);
      Store(sums + m * sums_stride + lane, sum);
    }
  }
}

void Multiply(const CompressedRowsArgs& a) {
  alignas(64) float sums[kMaxRows * kGroupPanels * kPanel];
  const int64_t width = a.panels * kPanel;
  for (int64_t m = 0; m < a.rows; ++m) {
    for (int64_t c = 0; c < width; ++c) {
      sums[m * width + c] = a.bias != nullptr && c < a.count ? a.bias[c] : 0.f;
    }
  }
  const float* block = a.group + width;
  int64_t k = 0;
  for (; k + kCompressedRows <= a.ic; k += kCompressedRows) {
    for (int p = 0; p < a.panels; ++p, block += kCompressedWords) {
      MultiplyBlock(a.src + k, a.ic, a.rows, block, a.group + p * kPanel, sums + p * kPanel, width);
    }
  }
  if (k < a.ic) {
    float rest[kMaxRows * kCompressedRows] = {};
    for (int64_t m = 0; m < a.rows; ++m) {
      for (int64_t i = k; i < a.ic; ++i) rest[m * kCompressedRows + i - k] = a.src[m * a.ic + i];
    }
    for (int p = 0; p < a.panels; ++p, block += kCompressedWords) {
      MultiplyBlock(rest, kCompressedRows, a.rows, block, a.group + p * kPanel, sums + p * kPanel,
                    width);
    }
  }
  for (int64_t m = 0; m < a.rows; ++m) {
    float* row = sums + m * width;
    for (int64_t i = 0; i < a.left_out_count; ++i) {
      const LeftOut& w = a.left_out[i];
      row[w.column - a.first_column] += a.src[m * a.ic + w.k] * w.value;
    }
    for (int64_t c = 0; c < a.count; ++c) a.dst[m * a.dst_stride + c] = row[c];
  }
}

// Compressed by plain time of 4096 x 4096 weights: AVX-512, 1 and 8 rows, 0.71 and 0.94;
// AVX2, 1 and 6 rows, 0.84 and 1.05; generic, 1 row, 1.09.
#if defined(__AVX512F__)
constexpr int kRowsLimit = kMaxRows;
#elif defined(__AVX2__)
constexpr int kRowsLimit = 3;
#else
constexpr int kRowsLimit = 0;
#endif

constexpr CompressedRowsKernels kTable = {kRowsLimit, Largest, Compress, Expand, Multiply};

}  // namespace

const CompressedRowsKernels& GetCompressedRowsKernels() { return kTable; }

}  // namespace bd::BD_ISA
