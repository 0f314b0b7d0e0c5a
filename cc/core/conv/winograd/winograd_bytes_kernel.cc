// Winograd's transforms of bytes. Compiled once per ISA; the algebra is in winograd_kernel.h.
#include "cc/core/conv/winograd/winograd_kernel.h"
#include "cc/core/conv/winograd/winograd_tiles_inl.h"
#include "cc/simd/convert/word_block.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

constexpr int kAlpha = 6, kTile = 4;

// y of 9 * 2^kBits y, of the rows and columns that DstAxis scales by so many bits.
constexpr int32_t kInverseOfNine = 954437177;
static_assert(static_cast<uint32_t>(9) * kInverseOfNine == 1);
constexpr int kAxisBits[kTile] = {3, 2, 1, 1};
template <int kBits>
inline IVec Unscaled(IVec z) {
  return ShiftRight<kBits>(MulInt(z, SetInt(kInverseOfNine)));
}
BD_INLINE IVec Unscaled(IVec z, int bits) {
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

// F(4x4, 3x3) of bytes: words of a source, int32 of sums.
struct Bytes {
  static constexpr WinogradTransform kT = kWinogradTransforms[kBytesRow];
  using Number = WordBlock;
  using Sum = IVec;
  using Element = int32_t;
  static constexpr int kStep = kWordLanes;

  static WordBlock Load(const uint8_t* p) { return SubWords(WidenedBytes(p), SetWordBlock(128)); }
  static void Store(uint16_t* p, WordBlock x) { StoreWordBlock(p, x); }
  // t = B^T d.
  static BD_INLINE void SourceAxis(const WordBlock (&d)[kAlpha], WordBlock (&t)[kAlpha]) {
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
  static IVec LoadSum(const int32_t* p) { return LoadInt(p); }
  static IVec AddSums(IVec x, IVec y) { return AddInt(x, y); }
  static IVec Start(const WinogradDstArgs& a) { return LoadInt(a.start); }
  // 24 y[0], 12 y[1], 6 y[2] and 6 y[3].
  static BD_INLINE void DstAxis(const IVec (&m)[kAlpha], IVec (&z)[kTile]) {
    const IVec a = AddInt(m[1], m[2]), b = SubInt(m[1], m[2]);
    const IVec c = AddInt(m[3], m[4]), e = SubInt(m[3], m[4]);
    z[0] = SubInt(AddInt(m[0], c), ShiftLeft<2>(a));
    z[1] = SubInt(e, ShiftLeft<1>(b));
    z[2] = SubInt(c, a);
    z[3] = AddInt(SubInt(ShiftLeft<1>(e), b), m[5]);
  }
  static BD_INLINE IVec Result(IVec z, int i, int j) {
    return Unscaled(z, kAxisBits[i] + kAxisBits[j]);
  }
};

// One vector of a tile, added to `start` if it is the first, or to dst [row][column].
template <bool kFirst>
BD_INLINE void AddPatch(const int32_t* src, int64_t plane_stride, const int32_t* start,
                        int32_t* dst) {
  DstPatch<Bytes, 1>(src, plane_stride, [&](int i, const auto& y) {
    BD_UNROLL
    for (int j = 0; j < kTile; ++j) {
      int32_t* const to = dst + (i * kTogether * kTile + j) * kBlock;
      StoreInt(to, AddInt(LoadInt(kFirst ? start : to), y[0][j]));
    }
  });
}

void Dst(const WinogradDstArgs& a) {
  if (a.ranges == 1 && StoreInRegisters<Bytes>(a)) return;
  DstByRows<Bytes, 1>(
      a, kTogether,
      [&](const int32_t* src, int v, int32_t* to) {
        AddPatch<true>(src, a.plane_stride, a.start + v, to);
        for (int64_t r = 1; r < a.ranges; ++r) {
          AddPatch<false>(src + r * a.distance, a.plane_stride, nullptr, to);
        }
      },
      [&](int32_t* sums, int64_t px, int64_t pixel) { FinishRow(a, sums, px, pixel); });
}

}  // namespace

constexpr WinogradBytesKernels kWinogradBytesKernels = {Source<Bytes, uint8_t, uint16_t>, Dst};

}  // namespace bd::BD_ISA
