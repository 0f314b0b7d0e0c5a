// Contract of Winograd's transforms of bytes: F(4x4, 3x3) in integers, exact.
//
// The points are 0, 1, -1, 2, -2 and infinity (winograd_kernel.h). B^T then has integers, and so
// has s G, the rows times s = (24, -6, -6, 24, 24, 6):
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
#include "cc/core/conv/winograd/winograd_kernel.h"

namespace bd {

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

}  // namespace bd
