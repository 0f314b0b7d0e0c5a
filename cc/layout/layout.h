// Memory layouts by name.
//
// A layout's name is its definition: the letters give the order of the dimensions
// in memory, outermost first. A capital letter is a dimension cut into blocks; what
// lies in one block follows at the end, outermost first, with its sizes:
//
//   nhwc        n*HWC + h*WC + w*C + c
//   nchw        n*CHW + c*HW + h*W + w
//   chwn        c*HWN + h*WN + w*N + n
//   nChw16c     n*Cp*HW + (c/16)*HW*16 + h*W*16 + w*16 + c%16,  Cp = round_up(C, 16)
//   OIhw8i8o    (o/8)*Ip*HW*8 + (i/8)*HW*64 + h*W*64 + w*64 + (i%8)*8 + o%8
//
// Whatever the layout, the logical order of the dimensions is n, c, d, h, w for
// activations and g, o, i, d, h, w for weights.
//
// A dense tensor in a layout has this shape: plain, its dimensions in the order of
// the letters; blocked, the numbers of blocks in that order, then the sizes of the
// blocks ([N, Cp/16, H, W, 16]). What a last block holds beyond the dimension, the
// tail, is zero: readers may rely on that, and every producer writes it.
#pragma once

#include <cstdint>
#include <string>

#include "cc/layout/dims.h"

namespace bd {

// The one list of layouts; everything else follows from the names. First come
// activations without space, in 1D, 2D and 3D; then weights of inner products, of
// convolutions in 1D, 2D and 3D, and of grouped and depthwise ones.
// clang-format off
#define BD_LAYOUTS(X)                                                           \
  X(x) X(nc) X(cn) X(nC8c) X(nC16c)                                             \
  X(ncw) X(nwc) X(cwn) X(nCw8c) X(nCw16c)                                       \
  X(nchw) X(nhwc) X(chwn) X(nChw8c) X(nChw16c)                                  \
  X(ncdhw) X(ndhwc) X(cdhwn) X(nCdhw8c) X(nCdhw16c)                             \
  X(oi) X(io) X(OI8i8o) X(OI16i16o)                                             \
  X(oiw) X(wio) X(OIw8i8o) X(OIw16i16o)                                         \
  X(oihw) X(hwio) X(OIhw8i8o) X(OIhw16i16o)                                     \
  X(oidhw) X(dhwio) X(OIdhw8i8o) X(OIdhw16i16o)                                 \
  X(goiw) X(wigo) X(gOIw8i8o) X(gOIw16i16o) X(Goiw8g) X(Goiw16g)                \
  X(goihw) X(hwigo) X(gOIhw8i8o) X(gOIhw16i16o) X(Goihw8g) X(Goihw16g)          \
  X(goidhw) X(dhwigo) X(gOIdhw8i8o) X(gOIdhw16i16o) X(Goidhw8g) X(Goidhw16g)
// clang-format on

#define BD_LAYOUT_ENUMERATOR(name) name,
enum class Layout { BD_LAYOUTS(BD_LAYOUT_ENUMERATOR) };
#undef BD_LAYOUT_ENUMERATOR

#define BD_COUNT_LAYOUT(name) +1
constexpr int kNumLayouts = 0 BD_LAYOUTS(BD_COUNT_LAYOUT);
#undef BD_COUNT_LAYOUT

constexpr int kMaxRank = 6;  // logical dimensions

const char* LayoutName(Layout layout);

// Returns false, and leaves *layout alone, for an unknown name.
bool ParseLayout(const std::string& name, Layout* layout);

// One line that says so and how layouts are named.
std::string UnknownLayout(const std::string& name);

// What a name says. Dimensions are given by their logical index.
struct LayoutParts {
  int rank = 0;
  char letters[kMaxRank + 1] = "";  // in logical order: "nchw" for nhwc
  int order[kMaxRank] = {};         // as in memory, outermost first
  int num_inner = 0;
  int inner_dim[2] = {};  // inside a block, outermost first
  int64_t inner_size[2] = {};

  // Elements of dimension `dim` in one block; 1 if it is not cut.
  int64_t block(int dim) const {
    for (int i = 0; i < num_inner; ++i) {
      if (inner_dim[i] == dim) return inner_size[i];
    }
    return 1;
  }
};
LayoutParts PartsOf(Layout layout);

// Channels that lie together: 16, 8, or 1 for a plain layout of activations.
int64_t ChannelBlock(Layout layout);

// The shape of a dense tensor in `layout` (see above). A negative size is one that
// is not known yet, and so is what depends on it: -1.
Dims PhysicalShape(Layout layout, const Dims& dims);

}  // namespace bd
