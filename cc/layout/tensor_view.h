// A tensor of activations as primitives see it: its data type, its layout, its dims, and how far
// its images lie apart.
//
// In all layouts whose images are outermost one formula gives the place of an element. An image
// is `blocks` planes of `pixels` runs of `lanes` channels:
//
//   offset(n, c, p) = n * image_stride + (c / lanes * pixels + p) * lanes + c % lanes
//
//   layout                          blocks         lanes
//   nc nwc nhwc ndhwc               1              C
//   nC16c ... nCdhw16c              ceil(C / 16)   16        (8 in blocks of 8)
//   ncw nchw ncdhw                  C              1
//
// where pixel p counts the spatial elements in the order d, h, w. A view says nothing about
// where the memory is: a primitive gets the address of the first image beside it. A tensor that
// is some channels of a wider one is a view whose images are as far apart as the wider one's.
//
// TensorDesc (tensor_desc.h) is the general description, of weights and of any strides; every
// view is one (desc()), and those of this kind are views (Of).
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/data_type.h"
#include "cc/layout/dims.h"
#include "cc/layout/layout.h"
#include "cc/layout/tensor_desc.h"

namespace bd {

class TensorView {
 public:
  TensorView() = default;  // no images of no channels

  // `dims` are n, c and 0 to 3 spatial sizes. `image_stride` is the distance between the first
  // elements of two images, in elements; 0 means that they follow each other. Ends the process
  // for arguments that Make refuses.
  TensorView(DataType dtype, Layout layout, const Dims& dims, int64_t image_stride = 0);

  // Returns an empty string, or one line that names what is wrong: a layout of weights or with
  // images inside, another number of dims than the layout's, a negative size, images that
  // overlap, more than 2^47 bytes. Sizes of zero are legal.
  static std::string Make(DataType dtype, Layout layout, const Dims& dims, int64_t image_stride,
                          TensorView* view);

  // False where no view describes the same memory: another kind of layout, an offset, or
  // strides other than the layout's in any dimension but n.
  static bool Of(const TensorDesc& desc, TensorView* view);
  TensorDesc desc() const;

  // The first `channels` channels of this tensor's images; the others are skipped from image to
  // image. Later channels of a blocked tensor are the same view, seen from the address of their
  // first block. Returns an empty string, or one line that says why there is no such view.
  std::string FirstChannels(int64_t channels, TensorView* part) const;

  DataType dtype() const { return dtype_; }
  Layout layout() const { return layout_; }
  const Dims& dims() const { return dims_; }
  bool blocked() const { return kind_ == Kind::kBlocked; }
  bool channels_last() const { return kind_ == Kind::kChannelsLast; }

  int64_t n() const { return n_; }
  int64_t c() const { return c_; }
  // The number of spatial dimensions, and their sizes; 1 where there is no such dimension.
  int spatial_rank() const { return dims_.size() - 2; }
  int64_t d() const { return Spatial(3); }
  int64_t h() const { return Spatial(2); }
  int64_t w() const { return Spatial(1); }
  int64_t pixels() const { return pixels_; }

  int64_t lanes() const { return lanes_; }    // channels that lie together; at least 1
  int64_t blocks() const { return blocks_; }  // of an image
  // Channels of a block: less than lanes() in the last one, if that has a tail.
  int64_t lanes_of(int64_t block) const {
    const int64_t left = c_ - block * lanes_;
    return left < lanes_ ? left : lanes_;
  }

  // Numbers of elements, tails included: from a block's plane and an image to the next of them;
  // and of all that is in an image.
  int64_t block_stride() const { return pixels_ * lanes_; }
  int64_t image_stride() const { return image_stride_; }
  int64_t image_elements() const { return blocks_ * block_stride(); }
  // Images follow each other without a gap.
  bool dense() const { return n_ <= 1 || image_stride_ == image_elements(); }

  // The first lane of a pixel, in elements and in bytes from the first one of the tensor.
  int64_t offset(int64_t n, int64_t block, int64_t pixel) const {
    return n * image_stride_ + (block * pixels_ + pixel) * lanes_;
  }
  int64_t byte_offset(int64_t n, int64_t block, int64_t pixel) const {
    return offset(n, block, pixel) * SizeOf(dtype_);
  }

  // An element, as references and tests look for it.
  int64_t element(int64_t n, int64_t channel, int64_t pixel) const {
    return offset(n, channel / lanes_, pixel) + channel % lanes_;
  }

  // From the first element to the last one, tail included: what memory must hold.
  int64_t elements() const {
    return n_ == 0 || image_elements() == 0 ? 0 : (n_ - 1) * image_stride_ + image_elements();
  }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }

  bool operator==(const TensorView& other) const {
    return dtype_ == other.dtype_ && layout_ == other.layout_ && dims_ == other.dims_ &&
           image_stride_ == other.image_stride_;
  }
  bool operator!=(const TensorView& other) const { return !(*this == other); }

  // "float32 nChw16c [2, 40, 5, 4]", with " images 480 apart" where they are not dense.
  std::string ToString() const;

 private:
  enum class Kind { kNone, kChannelsLast, kChannelsFirst, kBlocked };
  static Kind KindOf(const LayoutParts& parts);

  // Of the dimension that is `from_end` places from the end.
  int64_t Spatial(int from_end) const {
    return from_end <= spatial_rank() ? dims_[dims_.size() - from_end] : 1;
  }

  DataType dtype_ = DataType::f32;
  Layout layout_ = Layout::nChw16c;
  Dims dims_{0, 0, 0, 0};
  int64_t image_stride_ = 0;
  Kind kind_ = Kind::kBlocked;
  int64_t n_ = 0, c_ = 0, pixels_ = 0, lanes_ = 16, blocks_ = 0;
};

}  // namespace bd
