// The attributes of BlockdnnReorder, and the shapes they stand for.
#ifndef CC_TENSORFLOW_ATTRS_MOVEMENT_REORDER_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_MOVEMENT_REORDER_ATTRS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cc/core/reorder/reorder.h"
#include "cc/layout/tensor_desc.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/attrs/layout_shapes.h"
#include "tensorflow/core/framework/types.h"

namespace bd {

// Of one side, src or dst.
struct MemoryAttrs {
  const char* name;  // "src" or "dst"
  DataType dtype = DataType::f32;
  std::optional<Layout> layout;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  // The layout says all, so that dims may come from the tensor and the tensor has the
  // shape of the layout. Otherwise it is a piece of memory of any shape.
  bool is_whole() const { return layout && strides.empty() && offset == 0; }

  Status Set(tensorflow::DataType type, const std::string& layout_name);

  // The description; every one of dims must be known.
  Status Describe(const Dims& dims, TensorDesc* desc) const;
};

struct ReorderAttrs {
  MemoryAttrs src = {"src"}, dst = {"dst"};
  Dims dims;  // some may be kUnknown
  std::vector<float> scales;
  Dims scale_shape;  // of scales; empty: one for all elements
  float beta = 0;
  bool has_into = false;  // dst starts as a copy of the second input

  template <typename Context>
  Status Read(Context* c) {
    tensorflow::DataType src_type, dst_type;
    tensorflow::DataTypeVector into_types;
    std::string src_layout, dst_layout;
    std::vector<int64_t> given_dims, given_scale_shape;
    int64_t channels;
    TF_RETURN_IF_ERROR(c->GetAttr("T", &src_type));
    TF_RETURN_IF_ERROR(c->GetAttr("dst_type", &dst_type));
    TF_RETURN_IF_ERROR(c->GetAttr("src_layout", &src_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("dst_layout", &dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("dims", &given_dims));
    TF_RETURN_IF_ERROR(c->GetAttr("src_strides", &src.strides));
    TF_RETURN_IF_ERROR(c->GetAttr("src_offset", &src.offset));
    TF_RETURN_IF_ERROR(c->GetAttr("dst_strides", &dst.strides));
    TF_RETURN_IF_ERROR(c->GetAttr("dst_offset", &dst.offset));
    TF_RETURN_IF_ERROR(c->GetAttr("scales", &scales));
    TF_RETURN_IF_ERROR(c->GetAttr("scale_shape", &given_scale_shape));
    TF_RETURN_IF_ERROR(c->GetAttr("beta", &beta));
    TF_RETURN_IF_ERROR(c->GetAttr("into_types", &into_types));
    TF_RETURN_IF_ERROR(src.Set(src_type, src_layout));
    TF_RETURN_IF_ERROR(dst.Set(dst_type, dst_layout));
    has_into = !into_types.empty();
    if (into_types.size() > 1 || (has_into && into_types[0] != dst_type)) {
      return Invalid("into must be one tensor of dst_type ", DataTypeName(dst.dtype));
    }
    TF_RETURN_IF_ERROR(SetDims(given_dims, channels));
    return SetScaleShape(given_scale_shape);
  }

  // What the core is to do; every one of dims must be known.
  Status Describe(const Dims& dims, ReorderDesc* desc) const;

  // True if the batch is the outermost dimension of both sides.
  bool keeps_batch() const;

 private:
  Status SetDims(const std::vector<int64_t>& given, int64_t channels);
  Status SetScaleShape(const std::vector<int64_t>& given);
};

// Checks the inputs (`into` only if there is one) and sets the shape of dst and, of
// attrs.dims, what the shapes tell.
Status ReorderShape(const ReorderAttrs& attrs, const PartialTensorShape& src,
                    const PartialTensorShape& into, Dims* dims, PartialTensorShape* dst);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_MOVEMENT_REORDER_ATTRS_H_
