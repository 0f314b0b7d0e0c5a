// BlockdnnConcat.
#include "cc/core/concat/concat.h"

#include <numeric>

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

struct Concat : OpDefaults {
  using Plan = ConcatPlan;

  DataType dst_type = DataType::f32;
  std::vector<float> src_quantizations;     // two numbers an input
  std::vector<Quantization> quantizations;  // of each input; none of floats
  QuantizationAttr dst_quantization;
  int n = 0;
  std::vector<int64_t> channels;  // one an input
  // Of each input [first channel, channels of the tensor], or empty: all are joined whole.
  std::vector<int64_t> src_parts;
  DstPart dst_part;

  int64_t first(size_t i) const { return src_parts.empty() ? 0 : src_parts[2 * i]; }
  int64_t src_channels(size_t i) const {
    return src_parts.empty() ? channels[i] : src_parts[2 * i + 1];
  }
  int64_t dst_channels() const {
    return std::accumulate(channels.begin(), channels.end(), int64_t{0});
  }

  static OpSignature Signature() {
    return {"BlockdnnConcat",
            {"values: N * T", kTypedIntoInput},
            {"dst: dst_type"},
            "See bd.ops.concat."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, bfloat16, uint8} = DT_FLOAT", &dtype);
    v("dst_type: {float, bfloat16, uint8} = DT_FLOAT", &dst_type);
    v("src_quantizations: list(float) = []", &src_quantizations);
    dst_quantization.Visit("dst", v);
    v("N: int >= 1", &n);
    v("channels: list(int)", &channels);
    v("src_parts: list(int) = []", &src_parts);
    dst_part.Visit(v);
    dst_part.VisitIntoType(v);
  }
  Status Check() {
    const auto valid = [](int64_t c) { return c >= 1 && c <= INT32_MAX; };
    if (channels.size() != static_cast<size_t>(n) ||
        !std::all_of(channels.begin(), channels.end(), valid)) {
      return Invalid("channels must list the channels, from 1 to 2^31 - 1, of each of the ", n,
                     " values; got ", Text(channels));
    }
    if (!src_parts.empty() && src_parts.size() != 2 * channels.size()) {
      return Invalid("src_parts must list [first channel, channels of the tensor] of each of the ",
                     n, " values; got ", Text(src_parts));
    }
    for (size_t i = 0; i < channels.size(); ++i) {
      const int64_t total = src_channels(i);
      if (total <= INT32_MAX && first(i) >= 0 && first(i) <= total - channels[i]) continue;
      return Invalid("src_parts [", first(i), ", ", total, "] of ", channels[i],
                     " channels reaches beyond the whole tensor");
    }
    TF_RETURN_IF_ERROR(dst_part.Check(Layout::nChw16c, dst_channels()));
    TF_RETURN_IF_ERROR(dst_part.CheckIntoType(dst_type));
    return CheckTypes();
  }
  Status CheckTypes() {
    if (dst_type != dtype) {
      return Invalid("concat keeps the type ", DataTypeName(dtype), ", so dst_type cannot be ",
                     DataTypeName(dst_type), "; add a reorder");
    }
    if (src_quantizations.size() != (dtype == DataType::u8 ? 2 * channels.size() : 0)) {
      return Invalid("src_quantizations must list [scale, zero_point] of each of the values of",
                     " uint8, and nothing of others; got ", src_quantizations.size(),
                     " numbers for ", n, " values of ", DataTypeName(dtype));
    }
    quantizations.resize(src_quantizations.size() / 2);
    for (size_t i = 0; i < quantizations.size(); ++i) {
      TF_RETURN_IF_ERROR(ReadQuantization(absl::StrCat("values[", i, "]"), dtype,
                                          {&src_quantizations[2 * i], 2}, &quantizations[i]));
    }
    return dst_quantization.Check("dst", dst_type);
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    PartialTensorShape common;  // [N, ?, H, W, 16]
    for (int i = 0; i < n; ++i) {
      const std::string name = absl::StrCat("values[", i, "]");
      Plane plane;
      TF_RETURN_IF_ERROR(ReadPlane(name.c_str(), in[i], Layout::nChw16c, src_channels(i), &plane));
      PartialTensorShape free_channels, merged;
      TF_RETURN_IF_ERROR(BuildShape({plane.n, kUnknown, plane.h, plane.w, 16}, &free_channels));
      if (!common.MergeWith(free_channels, &merged).ok()) {
        return Invalid(name, " ", in[i].DebugString(),
                       " must have the batch, height and width of the values before it, ",
                       common.DebugString());
      }
      common = merged;
    }
    const Plane plane = {common.dim_size(0), common.dim_size(2), common.dim_size(3)};
    TF_RETURN_IF_ERROR(MakeShape(Layout::nChw16c, dst_part.tensor_channels(dst_channels()), plane,
                                 &dst->emplace_back()));
    return dst_part.CheckInto(in, dst->front());
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    const Plane plane = {in[0].dim_size(0), in[0].dim_size(2), in[0].dim_size(3)};
    ConcatDesc desc;
    desc.srcs.resize(n);
    desc.src_quantizations = quantizations;
    desc.dst_quantization = dst_quantization.value;
    for (int i = 0; i < n; ++i) {
      TF_RETURN_IF_ERROR(
          MakeView(dtype, Layout::nChw16c, src_channels(i), {}, plane, &desc.srcs[i]));
      desc.ranges.push_back({first(i), channels[i]});
    }
    TF_RETURN_IF_ERROR(
        MakeView(dtype, Layout::nChw16c, dst_channels(), dst_part, plane, &desc.dst));
    return FromCore(MakeConcatPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunConcat(plan, m.all_in<float>(0), m.out<void>(0, dst_part.offset(plan.desc.dst)), pool);
  }

  bool has_into() const { return dst_part.has_into(); }
  BlockedTensors Blocked(const ShapeList&) const {
    BlockedTensors blocked;
    for (int i = 0; i < n; ++i) {
      const Quantization quantization = quantizations.empty() ? Quantization() : quantizations[i];
      blocked.Input(i, ChannelPart(), Layout::nChw16c, src_channels(i), quantization);
    }
    return blocked.Output(0, dst_part, Layout::nChw16c, dst_channels(), dst_quantization.value);
  }
};

const OpRegistration<Concat> concat_registration;

}  // namespace
}  // namespace bd
