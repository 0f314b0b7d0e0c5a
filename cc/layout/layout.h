// Memory layouts of activations, and where an element lies in them.
//
// A layout's name is its definition: the letters give the order of the dimensions
// in memory, outermost first. A capital letter is a dimension cut into blocks, and
// the number at the end is the size of a block, whose elements lie together:
//
//   nhwc      n*HWC + h*WC + w*C + c
//   nchw      n*CHW + c*HW + h*W + w
//   chwn      c*HWN + h*WN + w*N + n
//   nChw16c   n*Cp*HW + (c/16)*HW*16 + h*W*16 + w*16 + c%16,  Cp = round_up(C, 16)
//
// A blocked tensor has the shape [N, Cp/16, H, W, 16]. Its channels C .. Cp-1, the
// tail, are zero: readers may rely on that, and every producer writes them.
#ifndef CC_LAYOUT_LAYOUT_H_
#define CC_LAYOUT_LAYOUT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace bd {

// The one list of layouts; everything else follows from the names.
#define BD_LAYOUTS(X) X(nhwc) X(nchw) X(chwn) X(nChw8c) X(nChw16c)

#define BD_LAYOUT_ENUMERATOR(name) name,
enum class Layout { BD_LAYOUTS(BD_LAYOUT_ENUMERATOR) };
#undef BD_LAYOUT_ENUMERATOR

const char* LayoutName(Layout layout);

// Returns false, and leaves *layout alone, for an unknown name.
bool ParseLayout(const std::string& name, Layout* layout);

// Channels that lie together: 16, 8, or 1 for a plain layout.
int64_t ChannelBlock(Layout layout);

// One number a dimension, in this order whatever the layout.
enum Dim { kN, kC, kH, kW, kNumDims };
using Dims = std::array<int64_t, kNumDims>;

// Where the elements of a tensor lie. Counts and strides are in elements.
class TensorDesc {
 public:
  // The whole of a dense tensor. Sizes of zero are legal.
  TensorDesc(const Dims& dims, Layout layout);

  // A plain tensor with strides of its own: a sub-tensor, a padded leading
  // dimension.
  TensorDesc(const Dims& dims, const Dims& strides) : dims_(dims), strides_(strides) {}

  const Dims& dims() const { return dims_; }
  // None if the tensor was described by strides.
  std::optional<Layout> layout() const { return layout_; }
  int64_t block() const { return block_; }

  // dims() with the channels rounded up to whole blocks.
  Dims padded_dims() const;

  // Distance between neighbours; strides()[kC] is that between blocks of channels.
  const Dims& strides() const { return strides_; }

  int64_t offset(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * strides_[kN] + c / block_ * strides_[kC] + h * strides_[kH] + w * strides_[kW] +
           c % block_;
  }

  // Elements from the first to the last, tail included: what a buffer must hold.
  int64_t size() const;
  int64_t size_bytes(int64_t element_bytes) const { return size() * element_bytes; }

  // No holes between the elements, the tail being elements too. (Strides that
  // let elements overlap are the caller's affair.)
  bool is_dense() const;

 private:
  Dims dims_;
  Dims strides_;
  int64_t block_ = 1;
  std::optional<Layout> layout_;
};

}  // namespace bd

#endif  // CC_LAYOUT_LAYOUT_H_
