// Winograd's transforms of bytes. Compiled once per ISA; the algebra is in winograd_bytes_kernel.h.
#include "cc/core/conv/winograd/winograd_bytes_kernel.h"

#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"
#include "cc/simd/convert/word_block.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

constexpr int kAlpha = kBytesAlpha, kTile = kBytesTile;

// t = B^T d.
inline __attribute__((always_inline)) void SourceAxis(const WordBlock (&d)[kAlpha],
                                                      WordBlock (&t)[kAlpha]) {
  const WordBlock even = SubWords(d[4], d[2]), odd = SubWords(d[3], d[1]);
  const WordBlock far = SubWords(d[4], ShiftWordsLeft<2>(d[2]));
  const WordBlock odd_far = SubWords(d[3], ShiftWordsLeft<2>(d[1]));
  const WordBlock twice = ShiftWordsLeft<1>(odd);
  t[0] = AddWords(ShiftWordsLeft<2>(SubWords(d[0], d[2])), even);
  t[1] = AddWords(far, odd_far);
  t[2] = SubWords(far, odd_far);
  t[3] = AddWords(even, twice);
  t[4] = SubWords(even, twice);
  t[5] = SubWords(SubWords(d[5], d[3]), ShiftWordsLeft<1>(twice));
}

// One patch of bytes whose pixels are row_stride and 16 apart.
void SourcePatch(const uint8_t* src, int64_t row_stride, uint16_t* dst, int64_t plane_stride) {
  const WordBlock middle = SetWordBlock(128);
  WordBlock half[kAlpha][kAlpha];
  BD_UNROLL
  for (int j = 0; j < kAlpha; ++j) {
    WordBlock d[kAlpha], t[kAlpha];
    BD_UNROLL
    for (int i = 0; i < kAlpha; ++i) {
      d[i] = SubWords(WidenedBytes(src + i * row_stride + j * kBlock), middle);
    }
    SourceAxis(d, t);
    BD_UNROLL
    for (int i = 0; i < kAlpha; ++i) half[i][j] = t[i];
  }
  BD_UNROLL
  for (int i = 0; i < kAlpha; ++i) {
    WordBlock t[kAlpha];
    SourceAxis(half[i], t);
    BD_UNROLL
    for (int j = 0; j < kAlpha; ++j) StoreWordBlock(dst + (i * kAlpha + j) * plane_stride, t[j]);
  }
}

void Source(const WinogradSourceArgs& a, uint8_t zero) {
  const uint8_t* const plane = static_cast<const uint8_t*>(a.src);
  uint16_t* dst = reinterpret_cast<uint16_t*>(a.dst);
  uint8_t patch[kAlpha * kAlpha * kBlock];
  for (int64_t t = 0; t < a.tiles; ++t, dst += kBlock) {
    const int64_t x = a.x + t * kTile;
    if (a.y >= 0 && x >= 0 && a.y + kAlpha <= a.ih && x + kAlpha <= a.iw) {
      SourcePatch(plane + (a.y * a.iw + x) * kBlock, a.iw * kBlock, dst, 2 * a.plane_stride);
      continue;
    }
    __builtin_memset(patch, zero, sizeof(patch));
    for (int64_t i = 0; i < kAlpha; ++i) {
      const int64_t h = a.y + i;
      if (h < 0 || h >= a.ih) continue;
      for (int64_t j = 0; j < kAlpha; ++j) {
        const int64_t w = x + j;
        if (w < 0 || w >= a.iw) continue;
        __builtin_memcpy(patch + (i * kAlpha + j) * kBlock, plane + (h * a.iw + w) * kBlock,
                         kBlock);
      }
    }
    SourcePatch(patch, kAlpha * kBlock, dst, 2 * a.plane_stride);
  }
}

// 24 y[0], 12 y[1], 6 y[2] and 6 y[3].
inline __attribute__((always_inline)) void DstAxis(const IVec (&m)[kAlpha], IVec (&z)[kTile]) {
  const IVec a = AddInt(m[1], m[2]), b = SubInt(m[1], m[2]);
  const IVec c = AddInt(m[3], m[4]), e = SubInt(m[3], m[4]);
  z[0] = SubInt(AddInt(m[0], c), ShiftLeft<2>(a));
  z[1] = SubInt(e, ShiftLeft<1>(b));
  z[2] = SubInt(c, a);
  z[3] = AddInt(SubInt(ShiftLeft<1>(e), b), m[5]);
}

// y of 9 * 2^kBits y, of the rows and columns that DstAxis scales by so many bits.
constexpr int32_t kInverseOfNine = 954437177;
static_assert(static_cast<uint32_t>(9) * kInverseOfNine == 1);
constexpr int kAxisBits[kTile] = {3, 2, 1, 1};
template <int kBits>
inline IVec Unscaled(IVec z) {
  return ShiftRight<kBits>(MulInt(z, SetInt(kInverseOfNine)));
}
inline __attribute__((always_inline)) IVec Unscaled(IVec z, int bits) {
  switch (bits) {
    case 2:
      return Unscaled<2>(z);
    case 3:
      return Unscaled<3>(z);
    case 4:
      return Unscaled<4>(z);
    case 5:
      return Unscaled<5>(z);
    default:
      return Unscaled<6>(z);
  }
}

// Calls row(i, y) for the rows of one vector of a tile.
template <typename Row>
inline __attribute__((always_inline)) void DstPatch(const int32_t* src, int64_t plane_stride,
                                                    Row&& row) {
  IVec half[kTile][kAlpha];
  BD_UNROLL
  for (int j = 0; j < kAlpha; ++j) {
    IVec m[kAlpha], z[kTile];
    BD_UNROLL
    for (int i = 0; i < kAlpha; ++i) m[i] = LoadInt(src + (i * kAlpha + j) * plane_stride);
    DstAxis(m, z);
    BD_UNROLL
    for (int i = 0; i < kTile; ++i) half[i][j] = z[i];
  }
  BD_UNROLL
  for (int i = 0; i < kTile; ++i) {
    IVec z[kTile];
    DstAxis(half[i], z);
    BD_UNROLL
    for (int j = 0; j < kTile; ++j) z[j] = Unscaled(z[j], kAxisBits[i] + kAxisBits[j]);
    row(i, z);
  }
}

// One vector of a tile, added to `start` if it is the first, or to dst [row][column], whose rows
// are `pitch` int32 apart.
template <bool kFirst>
inline __attribute__((always_inline)) void AddPatch(const int32_t* src, int64_t plane_stride,
                                                    const int32_t* start, int32_t* dst,
                                                    int64_t pitch) {
  DstPatch(src, plane_stride, [&](int i, const IVec(&y)[kTile]) {
    BD_UNROLL
    for (int j = 0; j < kTile; ++j) {
      int32_t* const to = dst + i * pitch + j * kBlock;
      StoreInt(to, AddInt(LoadInt(kFirst ? start : to), y[j]));
    }
  });
}

// Tiles that go through the epilogue together, which sets out once for their rows.
constexpr int kTogether = 8;
constexpr int64_t kPitch = kTogether * kTile * kBlock;

// `px` pixels of an output row, the first of them `pixel`.
void FinishRow(const WinogradBytesDstArgs& args, int32_t* sums, int64_t px, int64_t pixel) {
  const WinogradDstArgs& a = args.to;
  TileEpilogue e = a.epilogue;
  const int64_t offset = pixel * (e.row_major ? e.dst_step : kBlock);
  if (e.acc_in != nullptr) {
    const char* const in = reinterpret_cast<const char*>(e.acc_in);
    e.acc_in = reinterpret_cast<const float*>(in + offset * a.narrow->sum_bytes);
  }
  e.dst_offset += offset;
  TileArgs tile = {};
  tile.narrow = a.narrow;
  tile.fip.unscale = args.unscale;
  FinishNarrow<int32_t>(tile, e, {reinterpret_cast<float*>(sums), px, 1},
                        reinterpret_cast<char*>(a.dst) + offset * a.narrow->dst_bytes);
}

void DstBySums(const WinogradBytesDstArgs& args) {
  const WinogradDstArgs& a = args.to;
  alignas(64) int32_t sums[kTile * kPitch];
  const int64_t rows = a.h - a.y < kTile ? a.h - a.y : kTile;
  const int32_t* const src = reinterpret_cast<const int32_t*>(a.src);
  for (int64_t first = 0; first < a.tiles; first += kTogether) {
    const int64_t tiles = a.tiles - first < kTogether ? a.tiles - first : kTogether;
    for (int64_t t = 0; t < tiles; ++t) {
      for (int v = 0; v < kBlock; v += kLanes) {
        const int32_t* const from = src + (first + t) * kBlock + v;
        int32_t* const to = sums + t * kTile * kBlock + v;
        AddPatch<true>(from, a.plane_stride, args.start + v, to, kPitch);
        for (int64_t r = 1; r < args.ranges; ++r) {
          AddPatch<false>(from + r * args.distance, a.plane_stride, nullptr, to, kPitch);
        }
      }
    }
    const int64_t x = a.x + first * kTile;
    const int64_t px = a.w - x < tiles * kTile ? a.w - x : tiles * kTile;
    for (int64_t i = 0; i < rows; ++i) FinishRow(args, sums + i * kPitch, px, (a.y + i) * a.w + x);
  }
}

#if defined(BD_AVX512)

// `rows` rows of kPx pixels of a tile, the first of which is `pixel`.
template <int kPx>
[[gnu::noinline]] void FinishPatch(const WinogradBytesDstArgs& args,
                                   const InRegisters<int32_t, 1>& finish, const int32_t* src,
                                   int64_t rows, int64_t pixel) {
  const WinogradDstArgs& a = args.to;
  DstPatch(src, a.plane_stride, [&](int i, const IVec(&y)[kTile]) {
    if (i >= rows) return;
    IVec sums[kPx][1];
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) sums[p][0] = AddInt(LoadInt(args.start), y[p]);
    finish.Finish(sums, pixel + i * a.w, reinterpret_cast<char*>(a.dst));
  });
}

void Dst(const WinogradBytesDstArgs& args) {
  const WinogradDstArgs& a = args.to;
  TileArgs tile = {};
  tile.narrow = a.narrow;
  tile.fip.unscale = args.unscale;
  tile.epilogue = a.epilogue;
  const InRegisters<int32_t, 1> finish(tile, tile.epilogue);
  if (args.ranges > 1 || !finish.applies()) return DstBySums(args);
  const int64_t rows = a.h - a.y < kTile ? a.h - a.y : kTile;
  const int32_t* src = reinterpret_cast<const int32_t*>(a.src);
  for (int64_t t = 0; t < a.tiles; ++t, src += kBlock) {
    const int64_t x = a.x + t * kTile, pixel = a.y * a.w + x;
    switch (a.w - x) {
      case 1:
        FinishPatch<1>(args, finish, src, rows, pixel);
        break;
      case 2:
        FinishPatch<2>(args, finish, src, rows, pixel);
        break;
      case 3:
        FinishPatch<3>(args, finish, src, rows, pixel);
        break;
      default:
        FinishPatch<kTile>(args, finish, src, rows, pixel);
    }
  }
}

#else

// Two vectors a block leave the sums of a tile no registers.
void Dst(const WinogradBytesDstArgs& args) { DstBySums(args); }

#endif

constexpr WinogradBytesKernels kTable = {Source, Dst};

}  // namespace

const WinogradBytesKernels& GetWinogradBytesKernels() { return kTable; }

}  // namespace bd::BD_ISA
