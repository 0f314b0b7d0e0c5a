#include "cc/layout/tensor_view.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cc/base/str_cat.h"

namespace bd {

// By the order of the letters: n first, c second or last, and the spatial ones in their order.
TensorView::Kind TensorView::KindOf(const LayoutParts& parts) {
  if (parts.rank < 2 || parts.letters[kN] != 'n' || parts.letters[kC] != 'c') return Kind::kNone;
  const auto follows = [&](int first, int dim) {
    for (int i = first; dim < parts.rank; ++i, ++dim) {
      if (parts.order[i] != dim) return false;
    }
    return true;
  };
  if (parts.order[0] != kN) return Kind::kNone;
  if (parts.order[parts.rank - 1] == kC && follows(1, kC + 1)) {
    return parts.num_inner > 0 ? Kind::kBlocked : Kind::kChannelsLast;
  }
  if (!follows(1, kC)) return Kind::kNone;
  return parts.num_inner > 0 ? Kind::kBlocked : Kind::kChannelsFirst;
}

std::string TensorView::Make(DataType dtype, Layout layout, const Dims& dims, int64_t image_stride,
                             TensorView* view) {
  const LayoutParts parts = PartsOf(layout);
  const Kind kind = KindOf(parts);
  if (kind == Kind::kNone) {
    return StrCat(
        "layout ", LayoutName(layout),
        " is not one of activations with images outermost, such as nhwc, nchw or nChw16c");
  }
  TensorDesc dense;
  std::string error = TensorDesc::Make(dims, dtype, layout, {}, 0, &dense);
  if (!error.empty()) return error;

  TensorView v;
  v.dtype_ = dtype;
  v.layout_ = layout;
  v.dims_ = dims;
  v.kind_ = kind;
  v.n_ = dims[kN];
  v.c_ = dims[kC];
  v.pixels_ = 1;
  for (int i = kC + 1; i < dims.size(); ++i) v.pixels_ *= dims[i];
  v.lanes_ = parts.block(kC);
  if (kind == Kind::kChannelsLast) v.lanes_ = std::max<int64_t>(1, v.c_);
  v.blocks_ = (v.c_ + v.lanes_ - 1) / v.lanes_;
  v.image_stride_ = image_stride == 0 ? v.image_elements() : image_stride;
  const bool whole_blocks = !v.blocked() || v.image_stride_ % v.lanes_ == 0;
  if (v.image_stride_ < v.image_elements() || !whole_blocks) {
    return StrCat(
        "images of ", v.image_elements(), " elements cannot be ", image_stride, " elements apart",
        (whole_blocks ? "" : ", which is no multiple of the block's " + std::to_string(v.lanes_)));
  }
  Dims strides = dense.strides();
  strides[kN] = v.image_stride_;
  error = TensorDesc::Make(dims, dtype, layout, strides, 0, &dense);
  if (error.empty()) *view = v;
  return error;
}

TensorView::TensorView(DataType dtype, Layout layout, const Dims& dims, int64_t image_stride) {
  const std::string error = Make(dtype, layout, dims, image_stride, this);
  if (error.empty()) return;
  fprintf(stderr, "tf_blockdnn: TensorView: %s\n", error.c_str());
  abort();
}

bool TensorView::Of(const TensorDesc& desc, TensorView* view) {
  if (!desc.layout() || desc.offset() != 0) return false;
  TensorView made;
  const int64_t stride = desc.dims()[kN] > 1 ? desc.strides()[kN] : 0;
  if (!Make(desc.dtype(), *desc.layout(), desc.dims(), stride, &made).empty()) return false;
  // A stride of 0 is a view's word for dense; in a description images then share memory.
  if (desc.dims()[kN] > 1 && made.image_stride_ != stride) return false;
  const TensorDesc same = made.desc();
  for (int i = kC; i < desc.rank(); ++i) {
    const bool one = desc.padded_dims()[i] == desc.blocks()[i];
    if (!one && same.strides()[i] != desc.strides()[i]) return false;
  }
  *view = made;
  return true;
}

TensorDesc TensorView::desc() const {
  TensorDesc made(dims_, dtype_, layout_);
  if (image_stride_ == made.strides()[kN]) return made;
  Dims strides = made.strides();
  strides[kN] = image_stride_;
  TensorDesc::Make(dims_, dtype_, layout_, strides, 0, &made);
  return made;
}

std::string TensorView::FirstChannels(int64_t channels, TensorView* part) const {
  if (channels < 0 || channels > c_) {
    return StrCat(channels, " channels are not a part of ", c_);
  }
  if (channels != c_ && pixels_ > 1 && channels_last()) {
    return StrCat("some channels of layout ", LayoutName(layout_),
                  " are not a tensor of their own: the others lie between them");
  }
  Dims dims = dims_;
  dims[kC] = channels;
  return Make(dtype_, layout_, dims, image_stride_, part);
}

std::string TensorView::ToString() const {
  std::string text =
      std::string(DataTypeName(dtype_)) + " " + LayoutName(layout_) + " " + dims_.ToString();
  if (!dense()) text += StrCat(" images ", image_stride_, " apart");
  return text;
}

}  // namespace bd
