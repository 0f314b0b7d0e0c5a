// BlockdnnReorder.
#include "cc/core/reorder/reorder.h"

#include <cstring>
#include <optional>

#include "cc/layout/tensor_desc.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kInto = 1;

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

// Src or dst.
struct Side {
  const char* name;
  DataType dtype = DataType::f32;
  std::string layout_name;  // may be empty
  std::vector<int64_t> strides;
  int64_t offset = 0;
  QuantizationAttr quantization;  // none: of uint8 the numbers themselves
  std::optional<Layout> layout;

  void VisitMemory(AttrVisitor& v) {
    v(absl::StrCat(name, "_strides: list(int) = []"), &strides);
    v(absl::StrCat(name, "_offset: int = 0"), &offset);
  }
  Status Check() {
    if (!quantization.list.empty()) TF_RETURN_IF_ERROR(quantization.Check(name, dtype));
    if (layout_name.empty() || ParseLayout(layout_name, &layout.emplace())) {
      return absl::OkStatus();
    }
    return Invalid(name, "_layout: ", UnknownLayout(layout_name));
  }

  // The layout says all, so that dims may come from the tensor and the tensor has the
  // shape of the layout. Otherwise it is a piece of memory of any shape.
  bool is_whole() const { return layout && strides.empty() && offset == 0; }

  // The description; every one of dims must be known.
  Status Describe(const Dims& dims, TensorDesc* desc) const {
    const Dims own(strides.data(), std::min<size_t>(strides.size(), Dims::kCapacity));
    const std::string error = TensorDesc::Make(dims, dtype, layout, own, offset, desc);
    return error.empty() ? absl::OkStatus() : Invalid(name, ": ", error);
  }
};

struct Reorder : OpDefaults {
  using Plan = ReorderPlan;

  Side src = {"src"}, dst = {"dst"};
  int64_t channels = -1;
  std::vector<int64_t> dims_list, scale_shape_list;
  std::vector<float> scales;
  float beta = 0;
  std::vector<DataType> into_types;

  Dims dims;         // some may be kUnknown
  Dims scale_shape;  // of scales; empty: one for all elements

  static OpSignature Signature() {
    return {"BlockdnnReorder",
            {"src: T", "into: into_types"},
            {"dst: dst_type"},
            "See bd.ops.reorder."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, bfloat16, half, int32, int8, uint8} = DT_FLOAT", &src.dtype);
    v("dst_type: {float, bfloat16, half, int32, int8, uint8} = DT_FLOAT", &dst.dtype);
    v("src_layout: string", &src.layout_name);
    v("dst_layout: string", &dst.layout_name);
    v("channels: int >= -1 = -1", &channels);
    v("dims: list(int) = []", &dims_list);
    src.VisitMemory(v);
    dst.VisitMemory(v);
    v("scales: list(float) = []", &scales);
    v("scale_shape: list(int) = []", &scale_shape_list);
    v("beta: float = 0.0", &beta);
    v("into_types: list({float, bfloat16, half, int32, int8, uint8}) >= 0 = []", &into_types);
    src.quantization.Visit("src", v);
    dst.quantization.Visit("dst", v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(src.Check());
    TF_RETURN_IF_ERROR(dst.Check());
    if (into_types.size() > 1 || (has_into() && into_types[0] != dst.dtype)) {
      return Invalid("into must be one tensor of dst_type ", DataTypeName(dst.dtype));
    }
    TF_RETURN_IF_ERROR(SetDims());
    const std::vector<int64_t>& shape = scale_shape_list;
    if (!shape.empty() && shape.size() != static_cast<size_t>(dims.size())) {
      return Invalid("scales must be one number, or have ", dims.size(), " dimensions as dims ",
                     dims.ToString(), " have; got ", shape.size(),
                     shape.size() == 1 ? " dimension" : " dimensions");
    }
    scale_shape = Dims(shape.data(), shape.size());
    return absl::OkStatus();
  }
  Status SetDims() {
    const Side& named = src.layout ? src : dst;
    if (dims_list.size() > kMaxRank || (dims_list.empty() && !named.layout)) {
      return Invalid("dims must list the 1 to ", kMaxRank, " logical dimensions; got ",
                     dims_list.size());
    }
    if (dims_list.empty()) {
      const LayoutParts parts = PartsOf(*named.layout);
      dims = Dims::Filled(parts.rank, kUnknown);
      const char* c = strchr(parts.letters, 'c');
      if (c != nullptr) dims[static_cast<int>(c - parts.letters)] = channels;
    } else {
      dims = Dims(dims_list.data(), dims_list.size());
    }
    for (const Side* side : {&src, &dst}) {
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
        return Invalid("dims must be given in full where ", side->name,
                       " has strides or an offset");
      }
    }
    return absl::OkStatus();
  }

  // The batch is the outermost dimension of both sides.
  bool keeps_batch() const {
    return src.is_whole() && dst.is_whole() && PartsOf(*src.layout).letters[0] == 'n' &&
           PartsOf(*src.layout).order[0] == 0 && PartsOf(*dst.layout).order[0] == 0;
  }

  // Sets what the shapes tell of the dims, and, once all are known, what is to be done.
  Status Describe(const ShapeList& in, Dims* known, ReorderDesc* desc,
                  PartialTensorShape* shape) const {
    *known = dims;
    if (src.is_whole()) TF_RETURN_IF_ERROR(ReadDims("src", in[kSrc], *src.layout, known));
    if (dst.is_whole()) {
      if (has_into()) TF_RETURN_IF_ERROR(ReadDims("into", in[kInto], *dst.layout, known));
      TF_RETURN_IF_ERROR(ShapeOf(*dst.layout, *known, shape));
    }
    if (!IsKnown(*known)) return absl::OkStatus();

    TF_RETURN_IF_ERROR(src.Describe(*known, &desc->src));
    TF_RETURN_IF_ERROR(dst.Describe(*known, &desc->dst));
    desc->scales = scales;
    desc->src_quantization = src.quantization.value;
    desc->dst_quantization = dst.quantization.value;
    desc->scale_mask = 0;
    for (int d = 0; d < scale_shape.size(); ++d) {
      if (scale_shape[d] == 1) continue;
      if (scale_shape[d] != (*known)[d]) {
        return Invalid("scales of shape ", scale_shape.ToString(), " do not fit dims ",
                       known->ToString(), ": each dimension must be the same, or 1");
      }
      desc->scale_mask |= 1 << d;
    }
    desc->beta = has_into() ? beta : 0;
    if (!src.is_whole()) TF_RETURN_IF_ERROR(CheckMemory("src", in[kSrc], desc->src));
    if (!dst.is_whole()) {
      if (has_into()) TF_RETURN_IF_ERROR(CheckMemory("into", in[kInto], desc->dst));
      *shape = has_into() ? in[kInto] : PartialTensorShape({desc->dst.size()});
    }
    return FromCore(CheckReorder(*desc));
  }

  Status Shapes(const ShapeList& in, ShapeList* shapes) const {
    Dims known;
    ReorderDesc desc;
    return Describe(in, &known, &desc, &shapes->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Dims known;
    ReorderDesc desc;
    PartialTensorShape shape;
    TF_RETURN_IF_ERROR(Describe(in, &known, &desc, &shape));
    return FromCore(MakeReorderPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    const TensorDesc& to = plan.desc.dst;
    if (!has_into() && (!to.is_dense() || to.offset() > 0)) {  // what it does not write is 0
      memset(m.out<void>(), 0, to.size_bytes());
    }
    RunReorder(plan, m.in<void>(kSrc), m.out<void>(), pool);
  }

  // Dst starts as a copy of the second input.
  bool has_into() const { return !into_types.empty(); }
  // What `into` holds need not be a tensor yet.
  BlockedTensors Blocked(const ShapeList& in) const {
    Dims known;
    ReorderDesc desc;
    PartialTensorShape shape;
    if (!Describe(in, &known, &desc, &shape).ok()) return {};
    return BlockedTensors()
        .Input(kSrc, desc.src, src.quantization.value)
        .Output(0, desc.dst, dst.quantization.value);
  }
};

const OpRegistration<Reorder> reorder_registration;

}  // namespace
}  // namespace bd
