#include "cc/tensorflow/attrs/movement/reorder_attrs.h"

#include <algorithm>
#include <cstring>

namespace bd {
namespace {

constexpr struct {
  tensorflow::DataType tensorflow;
  DataType ours;
} kDataTypes[] = {
    {tensorflow::DT_FLOAT, DataType::f32}, {tensorflow::DT_BFLOAT16, DataType::bf16},
    {tensorflow::DT_HALF, DataType::f16},  {tensorflow::DT_INT32, DataType::s32},
    {tensorflow::DT_INT8, DataType::s8},   {tensorflow::DT_UINT8, DataType::u8},
};

bool IsKnown(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 0; });
}

// Any tensor of enough elements can be the memory.
Status CheckMemory(const std::string& name, const PartialTensorShape& shape,
                   const TensorDesc& desc) {
  if (!shape.IsFullyDefined() || shape.num_elements() >= desc.size()) return absl::OkStatus();
  return Invalid(name, " has ", shape.num_elements(), " elements, not the ", desc.size(), " that ",
                 desc.ToString(), " needs");
}

}  // namespace

Status MemoryAttrs::Set(tensorflow::DataType type, const std::string& layout_name) {
  for (const auto& row : kDataTypes) {
    if (row.tensorflow == type) dtype = row.ours;
  }
  if (!layout_name.empty() && !ParseLayout(layout_name, &layout.emplace())) {
    return Invalid(name, "_layout: ", UnknownLayout(layout_name));
  }
  return absl::OkStatus();
}

Status MemoryAttrs::Describe(const Dims& dims, TensorDesc* desc) const {
  const Dims own(strides.data(), std::min<size_t>(strides.size(), Dims::kCapacity));
  const std::string error = TensorDesc::Make(dims, dtype, layout, own, offset, desc);
  return error.empty() ? absl::OkStatus() : Invalid(name, ": ", error);
}

Status ReorderAttrs::SetDims(const std::vector<int64_t>& given, int64_t channels) {
  const MemoryAttrs& named = src.layout ? src : dst;
  if (given.size() > kMaxRank || (given.empty() && !named.layout)) {
    return Invalid("dims must list the 1 to ", kMaxRank, " logical dimensions; got ", given.size());
  }
  if (given.empty()) {
    const LayoutParts parts = PartsOf(*named.layout);
    dims = Dims::Filled(parts.rank, kUnknown);
    const char* c = strchr(parts.letters, 'c');
    if (c != nullptr) dims[static_cast<int>(c - parts.letters)] = std::max(channels, kUnknown);
  } else {
    dims = Dims(given.data(), given.size());
  }
  for (const MemoryAttrs* side : {&src, &dst}) {
    if (side->is_whole()) {
      const LayoutParts parts = PartsOf(*side->layout);
      if (parts.rank != dims.size()) {
        return Invalid(side->name, "_layout ", LayoutName(*side->layout), " has ", parts.rank,
                       " dimensions, not the ", dims.size(), " of the reorder");
      }
      for (int i = 0; side == &src && i < parts.num_inner; ++i) {
        const int d = parts.inner_dim[i];
        if (dims[d] >= 0) continue;
        return Invalid("dims must give dimension ", d, " (", std::string(1, parts.letters[d]),
                       "): a tensor in ", LayoutName(*side->layout),
                       " does not tell how much of it is tail");
      }
    } else if (!IsKnown(dims)) {
      return Invalid("dims must be given in full where ", side->name, " has strides or an offset");
    }
  }
  return absl::OkStatus();
}

Status ReorderAttrs::Describe(const Dims& known_dims, ReorderDesc* desc) const {
  TF_RETURN_IF_ERROR(src.Describe(known_dims, &desc->src));
  TF_RETURN_IF_ERROR(dst.Describe(known_dims, &desc->dst));
  desc->scales = scales;
  desc->scale_mask = 0;
  for (int d = 0; d < scale_shape.size(); ++d) {
    if (scale_shape[d] == 1) continue;
    if (scale_shape[d] != known_dims[d]) {
      return Invalid("scales of shape ", scale_shape.ToString(), " do not fit dims ",
                     known_dims.ToString(), ": each dimension must be the same, or 1");
    }
    desc->scale_mask |= 1 << d;
  }
  desc->beta = has_into ? beta : 0;
  return absl::OkStatus();
}

Status ReorderAttrs::SetScaleShape(const std::vector<int64_t>& given) {
  if (!given.empty() && given.size() != static_cast<size_t>(dims.size())) {
    return Invalid("scales must be one number, or have ", dims.size(), " dimensions as dims ",
                   dims.ToString(), " have; got ", given.size(),
                   given.size() == 1 ? " dimension" : " dimensions");
  }
  scale_shape = Dims(given.data(), given.size());
  return absl::OkStatus();
}

bool ReorderAttrs::keeps_batch() const {
  return src.is_whole() && dst.is_whole() && PartsOf(*src.layout).letters[0] == 'n' &&
         PartsOf(*src.layout).order[0] == 0 && PartsOf(*dst.layout).order[0] == 0;
}

Status ReorderShape(const ReorderAttrs& attrs, const PartialTensorShape& src,
                    const PartialTensorShape& into, Dims* dims, PartialTensorShape* dst) {
  *dims = attrs.dims;
  if (attrs.src.is_whole()) TF_RETURN_IF_ERROR(ReadDims("src", src, *attrs.src.layout, dims));
  if (attrs.dst.is_whole()) {
    if (attrs.has_into) TF_RETURN_IF_ERROR(ReadDims("into", into, *attrs.dst.layout, dims));
    TF_RETURN_IF_ERROR(ShapeOf(*attrs.dst.layout, *dims, dst));
  }
  if (!IsKnown(*dims)) return absl::OkStatus();

  ReorderDesc desc;
  TF_RETURN_IF_ERROR(attrs.Describe(*dims, &desc));
  if (!attrs.src.is_whole()) TF_RETURN_IF_ERROR(CheckMemory("src", src, desc.src));
  if (!attrs.dst.is_whole()) {
    if (attrs.has_into) TF_RETURN_IF_ERROR(CheckMemory("into", into, desc.dst));
    *dst = attrs.has_into ? into : PartialTensorShape({desc.dst.size()});
  }
  const std::string error = CheckReorder(desc);
  return error.empty() ? absl::OkStatus() : Invalid(error);
}

}  // namespace bd
