// Contract between the Winograd driver and its per-ISA transforms.
//
// F(m, r) along an axis computes m outputs of r taps with alpha = m + r - 1
// multiplications (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015), from Toom and Cook's interpolation at alpha - 1 points p and
// infinity:
//   A^T[k][i] = p_i^k          B^T[i] = coefficients of prod_{j != i} (x - p_j)
//   G[i]      = (1, p_i, p_i^2, ..) / prod_{j != i} (p_i - p_j)
// The points make B^T; with m they make A^T, with r they make G. Both axes of a
// window together:  y = A^T [ (G g G^T) . (B^T d B) ] A. An axis of one tap is
// left as it is: alpha = m = 1.
//
// A window of stride s is one of stride 1 over phases: s x s neighbouring pixels are
// one pixel of s^2 ic channels, and r = ceil(k / s) taps, the last ones zero where s
// does not divide k.
//
// 3 taps at stride 2 are 2 taps of even pixels e and 1 of odd ones o (split_phases):
//   y[0] = g0 e0 + g2 e1 + g1 o0 = g0 (e0 - e1) + g1 o0 +  (g0 + g2) e1
//   y[1] = g0 e1 + g2 e2 + g1 o1 = g2 (e2 - e1) + g1 o1 +  (g0 + g2) e1
// that is 5 multiplications of 6, 25 of 36 in both directions, in planes 0, 1 and 2 of an axis, of
// which plane 1 has no odd pixels. Nothing but e0 - e1, e2 - e1 and g0 + g2 is rounded.
//
// Of bytes F(4x4, 3x3) is computed in integers, exact, by the points 0, 1, -1, 2, -2 and infinity.
// B^T then has integers, and so has s G, the rows times s = (24, -6, -6, 24, 24, 6):
//
//         4  0 -5  0  1  0        6  0  0
//         0 -4 -4  1  1  0        1  1  1        24 y[0] = m0 - 4 (m1 + m2) +   (m3 + m4)
//   B^T = 0  4 -4 -1  1  0  s G = 1 -1  1        12 y[1] =    - 2 (m1 - m2) +   (m3 - m4)
//         0 -2 -1  2  1  0        1  2  4         6 y[2] =    -   (m1 + m2) +   (m3 + m4)
//         0  2 -1 -2  1  0        1 -2  4         6 y[3] = m5 -   (m1 - m2) + 2 (m3 - m4)
//         0  4  0 -5  0  1        0  0  6
//
// A source is x = q - 128 of a byte q, so |B^T x B| <= 10 * 10 * 128 and |s G w (s G)^T| <= 7 * 7 *
// 127 are words. Their products add up modulo 2^32, and so does what follows: both axes give 9 *
// 2^k y, k <= 6; times the inverse of 9 modulo 2^32 and shifted to the right by k bits that is y
// itself where -2^25 <= y < 2^25. Sums over channels with 128 sum |w| < 2^25 are therefore exact,
// and where the channels have more they are added up in ranges that fit.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/epilogue_kernel.h"

namespace bd {

// F(mh x mw) of a window kh x kw at one stride both ways. Measured cycles of one core (Zen 4, 3.7
// GHz, AVX-512): a tile of one channel block through the transform of the source, and of dst.
struct WinogradTransform {
  const char* name;
  int kh, kw, stride;
  int mh, mw;
  double source, dst;

  constexpr bool split_phases() const { return kh == 3 && stride == 2; }
  constexpr int taps_h() const { return (kh + stride - 1) / stride; }
  constexpr int taps_w() const { return (kw + stride - 1) / stride; }
  constexpr int phases() const { return stride * stride; }
  constexpr int alpha_h() const { return mh + taps_h() - 1; }
  constexpr int alpha_w() const { return mw + taps_w() - 1; }
  constexpr int planes() const { return alpha_h() * alpha_w(); }
  // Multiplications of a tile for each source channel.
  constexpr int products() const { return split_phases() ? 25 : planes() * phases(); }
  constexpr bool holds_windows() const { return mh % 2 == 0 && mw % 2 == 0; }  // of 2x2
  // Whether the points are 0 and +-1 alone, so that planes may be rounded to bfloat16: B^T and A^T
  // have no other numbers, and with white data a result loses (4 * 2.5^2 / 9)^(1/2) = 1.7 times as
  // much by V, and as much by U, as the direct sum loses by rounded weights.
  constexpr bool rounds_planes() const { return alpha_h() <= 4 && alpha_w() <= 4; }
};

constexpr WinogradTransform kWinogradTransforms[] = {
    {"winograd2x2", 3, 3, 1, 2, 2, 60, 60},    // 16 multiplications of 36
    {"winograd4x4", 3, 3, 1, 4, 4, 260, 240},  // 36 of 144
    {"winograd2x2", 5, 5, 1, 2, 2, 260, 130},  // 36 of 100
    {"winograd1x4", 1, 3, 1, 1, 4, 50, 45},    // 6 of 12
    {"winograd4x1", 3, 1, 1, 4, 1, 45, 55},    //
    {"winograd1x3", 1, 7, 1, 1, 3, 75, 50},    // 9 of 21
    {"winograd3x1", 7, 1, 1, 3, 1, 45, 50},    //
    {"winograd3x3", 7, 7, 2, 3, 3, 600, 190},  // 36 * 4 phases of 441
    {"winograd2x2", 3, 3, 2, 2, 2, 30, 50},    // 25 of 36; the source of one phase
};
constexpr int kNumWinogradTransforms = sizeof(kWinogradTransforms) / sizeof(WinogradTransform);
constexpr int kMaxWinogradPlanes = [] {
  int most = 0;
  for (const WinogradTransform& t : kWinogradTransforms)
    most = t.planes() > most ? t.planes() : most;
  return most;
}();

// The phases of split_phases in an order in which those of each plane are neighbours.
struct WinogradPhase {
  int row, column;
};
constexpr WinogradPhase kPhases[] = {{0, 1}, {0, 0}, {1, 0}, {1, 1}};
struct PhaseRange {
  int64_t begin, end;
};
constexpr PhaseRange PhasesOfPlane(int row, int column) {
  return {column == 1 ? 1 : 0, row == 1 ? 2 : column == 1 ? 3 : 4};
}

// The points of an axis: `pairs` numbers, each with its negative, and 0 where alpha
// is even. With white data each product M[i] of output k brings an error of
//   |A^T[k][i]| |G[i]| |B^T[i]|
// roundings (the norms of rows). The root of their squares' sum is within 1 % of
// the least for these small fractions: 6.9 for F(3, 7), 7.2 for F(4x4, 3x3), which
// has twice the error with 0, +-1, +-2. Powers near one lose least.
struct WinogradPoints {
  int pairs;
  bool zero;
  double p[4];
};

constexpr WinogradPoints WinogradPointsOf(int alpha) {
  switch (alpha) {
    case 4:
      return {1, true, {1}};
    case 6:
      return {2, true, {5. / 7, 7. / 5}};
    case 9:
      return {4, false, {1. / 4, 2. / 3, 9. / 8, 9. / 4}};
    default:
      return {0, false, {}};  // alpha 1: nothing to interpolate; alpha 3: split_phases
  }
}

// Patches of alpha_h x alpha_w pixels, mw apart -> the planes of the transformed
// source. Of one source block; or of a plain source, whose phases fill one block, and a pixel is
// stride x stride of its pixels.
struct WinogradSourceArgs {
  const void* src;  // the block's plane [ih][iw][16], or [ih][iw][ic]
  int64_t ih, iw, ic;
  int64_t y, x;          // in src, of the first patch; may lie outside: zero there
  int64_t tiles;         // patches along the row
  float* dst;            // [xi][..][tile][16], plane 0, first tile
  int64_t plane_stride;  // dwords between planes
  int64_t phase_stride;  // and with split_phases between kPhases
  uint8_t zero;          // of bytes: what stands for zero outside
};

// One output block: the planes -> tiles of mh x mw pixels, or of the maxima of their 2x2
// windows, epilogue applied.
struct WinogradDstArgs {
  const float* src;  // plane 0, first tile
  int64_t plane_stride;
  float* dst;  // the block's plane [h][w][16]; plain: its first channel, pixels dst_step apart
  int64_t h, w;
  int64_t y, x;           // first pixel of the first tile
  int64_t tiles;          // along the row
  TileEpilogue epilogue;  // acc_in and dst_offset are those of the block's plane
  // Of bytes the planes are int32, one set for each range of channels, `distance` apart; [16] are
  // added to sums: (128 - zero point) times those of weights.
  int64_t ranges = 1, distance = 0;
  const int32_t* start = nullptr;
};

// In the order of kWinogradTransforms.
struct WinogradKernels {
  // Null where phases are split.
  void (*source[kNumWinogradTransforms])(const WinogradSourceArgs&);       // of float
  void (*source_bf16[kNumWinogradTransforms])(const WinogradSourceArgs&);  // of bfloat16
  // Of bfloat16 to planes of bfloat16; null unless rounds_planes(), and without AVX512_BF16.
  void (*source_rounded[kNumWinogradTransforms])(const WinogradSourceArgs&);
  void (*dst[kNumWinogradTransforms])(const WinogradDstArgs&);
  // Of maxima, by a bias and a clamp at most; null where windows would straddle tiles.
  void (*dst_max[kNumWinogradTransforms])(const WinogradDstArgs&);
};

BD_KERNEL_TABLE_OF(WinogradKernels, generic, avx2, avx512, avx512_bf16)

constexpr int kBytesRow = 1;  // of kWinogradTransforms
// What sum |w| of a range may be; however large its weights are, 14 blocks of channels fit.
constexpr int64_t kMostBytesWeights = ((1 << 25) - 1) / 128;
constexpr int64_t kSafeBlocks = 14;
static_assert(kSafeBlocks * 16 * 3 * 3 * 127 <= kMostBytesWeights);

struct WinogradBytesKernels {
  // Of one source block of bytes to planes of words: [xi][..][tile][16 words].
  void (*source)(const WinogradSourceArgs&);
  void (*dst)(const WinogradDstArgs&);
};

BD_KERNEL_TABLE(WinogradBytesKernels)

constexpr int kMaxAlpha = 9, kMaxTaps = 7;  // of an axis of kWinogradTransforms

// G of one axis, alpha x taps; the last row is the point at infinity.
struct WinogradAxis {
  int taps, alpha;
  double g[kMaxAlpha][kMaxTaps];
};

// U[xi] = (G_h w G_w^T)[xi] for one source channel and `lanes` (at most 16) output channels, in
// double, rounded once; lanes after them are zero.
struct WinogradWeightsArgs {
  const WinogradAxis *h, *w;
  const float* const* taps;  // [h->taps][w->taps] the first lane of each, or null: zeros
  int64_t lanes;
  float* out;  // [xi][plane_stride]: 16 floats of each plane
  int64_t plane_stride;
};

struct WinogradWeightsKernels {
  void (*transform)(const WinogradWeightsArgs&);
};

BD_KERNEL_TABLE(WinogradWeightsKernels)

}  // namespace bd
