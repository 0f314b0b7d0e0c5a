// BlockdnnAttention.
#include "cc/core/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cc/core/attention/attention_kernel.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

// Inputs: q, k, v, the biases, and a mask, if there is one.
enum { kQ, kK, kV, kDst, kBiases = kDst };
constexpr const char* kNames[] = {"q", "k", "v", "dst"};

// The order of the axes of q, k, v and dst: sequences, rows and heads; the last one is of elements.
enum class Axes { kBTNH, kBNTH, kTBNH };

constexpr int kMaxAtAxis = 16;  // far beyond the ranks of tensors

// Notes a size, or that it is another than what is known.
Status Note(const char* name, const char* meaning, int64_t size, int64_t* known) {
  if (size == kUnknown || size == *known) return absl::OkStatus();
  if (*known == kUnknown) {
    *known = size;
    return absl::OkStatus();
  }
  return Invalid(name, " has ", size, " ", meaning, ", not ", *known);
}

// A bias or mask as [sequences, heads, queries, keys], ones in front of what it has: tensors of
// rank 3 have no axis of heads. A dimension more, of 1, is in front of all.
std::array<int64_t, 4> BiasDims(const PartialTensorShape& bias, int rank) {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  for (int i = 0; i < bias.dims(); ++i) {
    const int axis = 4 - bias.dims() + i;  // of four; a sequence of rank 3 moves over the heads
    if (axis >= 0) dims[rank == 3 && axis == 1 ? 0 : axis] = bias.dim_size(i);
  }
  return dims;
}

Status CheckBias(const std::string& name, const PartialTensorShape& bias, int rank,
                 const AttentionDesc& s) {
  if (bias.unknown_rank()) return absl::OkStatus();
  const auto dims = BiasDims(bias, rank);
  const int64_t all[] = {s.batch, s.heads, s.queries, s.keys};
  bool fits = bias.dims() <= rank || (bias.dims() == rank + 1 && bias.dim_size(0) == 1);
  for (int i = 0; i < 4 && fits; ++i) {
    const bool unknown = dims[i] == kUnknown || all[i] == kUnknown;
    const bool repeats = i == 0 && dims[i] > 0 && all[i] % dims[i] == 0;
    fits = unknown || dims[i] == all[i] || repeats || dims[i] == 1;
  }
  if (fits) return absl::OkStatus();
  const auto text = [](int64_t size) { return size == kUnknown ? "?" : absl::StrCat(size); };
  return Invalid(name, " must be broadcastable to the scores, [", text(s.batch), ",",
                 rank == 3 ? "" : text(s.heads) + ",", text(s.queries), ",", text(s.keys),
                 "]; got ", bias.DebugString());
}

AttentionBias Bias(const PartialTensorShape& shape, int rank) {
  const auto dims = BiasDims(shape, rank);
  const auto stride = [&](int axis, int64_t elements) { return dims[axis] == 1 ? 0 : elements; };
  AttentionBias bias;
  bias.sequences = std::max<int64_t>(1, dims[0]);
  bias.strides = {dims[1] * dims[2] * dims[3], stride(1, dims[2] * dims[3]), stride(2, dims[3])};
  bias.key_stride = stride(3, 1);
  return bias;
}

struct Attention : OpDefaults {
  using Plan = AttentionPlan;

  AttentionDesc desc;  // but for sizes and strides
  int num_masks = 0;
  Axes axes[4] = {};  // of q, k, v and dst
  // Of q, k and v: the indices of axes at_axis, at_axis + 1, .. of a larger tensor at which they
  // are, such as a cache, or the product that makes all three.
  std::vector<int64_t> at[3];
  int at_axis = 1;

  int mask() const { return kBiases + desc.num_biases; }

  static OpSignature Signature() {
    return {"BlockdnnAttention",
            {"q: T", "k: T", "v: T", "biases: num_biases * T", "masks: num_masks * bool"},
            {"dst: T"},
            "See bd.ops.attention."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_biases: int >= 0 = 0", &desc.num_biases);
    v("num_masks: int >= 0 = 0", &num_masks);
    for (int i : {kQ, kK, kV, kDst}) {
      v.Choice(absl::StrCat(kNames[i], "_layout").c_str(), &axes[i],
               {{"BTNH", Axes::kBTNH}, {"BNTH", Axes::kBNTH}, {"TBNH", Axes::kTBNH}}, "BTNH");
    }
    v("scale: float = 1.0", &desc.scale);
    v("causal: bool = false", &desc.causal);
    v("masked_value: float = -inf", &desc.masked);
    v("zero_masked: bool = false", &desc.zero_masked);
    v("k_at: list(int) = []", &at[kK]);
    v("v_at: list(int) = []", &at[kV]);
    v("soft_cap: float = 0.0", &desc.soft_cap);
    v("late_biases: int >= 0 = 0", &desc.late_biases);
    v("q_at: list(int) = []", &at[kQ]);
    v("at_axis: int >= 1 = 1", &at_axis);
    v("round_rows: bool = false", &desc.rounds);
    VisitScratchpadMode(v);
  }
  Status Check() const {
    if (desc.num_biases > kMaxAttentionBiases) {
      return Invalid("attention adds at most ", kMaxAttentionBiases, " biases, not ",
                     desc.num_biases, "; add them before");
    }
    if (at_axis > kMaxAtAxis) {
      return Invalid("at_axis must be at most ", kMaxAtAxis, ", not ", at_axis);
    }
    if (num_masks > 1) return Invalid("attention has one mask, not ", num_masks, "; join them");
    if (desc.late_biases > desc.num_biases) {
      return Invalid("late_biases: of ", desc.num_biases, " biases ", desc.late_biases,
                     " cannot be added after the mask");
    }
    if (!IsZero(desc.soft_cap) && !(std::isnormal(desc.soft_cap) && desc.soft_cap > 0.f)) {
      return Invalid("soft_cap must be a positive number, or 0 for none; got ", desc.soft_cap);
    }
    return absl::OkStatus();
  }

  // What is read of in[i].
  Status Selected(const ShapeList& in, int i, PartialTensorShape* shape) const {
    *shape = in[i];
    if (shape->unknown_rank()) return absl::OkStatus();
    const int count = static_cast<int>(at[i].size());
    for (int axis = at_axis; axis < at_axis + count; ++axis) {
      const int64_t index = at[i][axis - at_axis];
      // The last axis is of elements, which are neighbours.
      const int64_t size = axis < shape->dims() - 1 ? shape->dim_size(axis) : 0;
      if (index >= 0 && (size == kUnknown || index < size)) continue;
      return Invalid(kNames[i], "_at: ", index, " is no index of axis ", axis, " of ",
                     shape->DebugString());
    }
    // Without indices the tensor may have fewer axes than at_axis.
    if (count > 0) shape->RemoveDimRange(at_axis, at_axis + count);
    return absl::OkStatus();
  }
  // Lets the strides be those of a part of in[i]: entries of the axes in front of at_axis are as
  // long as they are there.
  void PlaceWithin(const ShapeList& in, int i, AttentionStrides* strides) const {
    std::vector<int64_t*> outer = {&strides->sequence, &strides->row, &strides->head};
    if (axes[i] == Axes::kBNTH) std::swap(outer[1], outer[2]);
    if (axes[i] == Axes::kTBNH) std::swap(outer[0], outer[1]);
    const int count = static_cast<int>(at[i].size());
    if (in[i].dims() - count == 3)
      outer.erase(std::find(outer.begin(), outer.end(), &strides->head));
    outer.resize(std::min<size_t>(outer.size(), at_axis));
    for (int axis = at_axis + count - 1; axis >= at_axis; --axis) {
      strides->first += at[i][axis - at_axis] * *outer.back();
      for (int64_t* const stride : outer) *stride *= in[i].dim_size(axis);
    }
  }

  // One of q, k and v: of rank 4, in any order of axes, or of rank 3, without that of heads.
  Status NoteTensor(int i, const PartialTensorShape& shape, int rank, int64_t* batch,
                    int64_t* heads, int64_t* rows, int64_t* size) const {
    if (shape.unknown_rank()) return absl::OkStatus();
    const int dims = shape.dims();
    if ((dims != 3 && dims != 4) || dims != rank) {
      return Invalid("q, k and v must all be of rank 4, or of rank 3: one head; ", kNames[i],
                     " is ", shape.DebugString());
    }
    const int first = axes[i] == Axes::kTBNH ? 1 : 0, heads_axis = axes[i] == Axes::kBNTH ? 1 : 2;
    const int rows_axis = first == 1 ? 0 : (dims == 4 ? 3 - heads_axis : 1);
    TF_RETURN_IF_ERROR(Note(kNames[i], "sequences", shape.dim_size(first), batch));
    TF_RETURN_IF_ERROR(Note(kNames[i], "heads", dims == 3 ? 1 : shape.dim_size(heads_axis), heads));
    TF_RETURN_IF_ERROR(
        Note(kNames[i], i == kQ ? "queries" : "keys", shape.dim_size(rows_axis), rows));
    return Note(kNames[i], "elements a row", shape.dim_size(dims - 1), size);
  }
  // All inputs against each other; *s becomes desc with the sizes, kUnknown where the inputs do not
  // say, and *rank that of q, k, v and dst.
  Status Resolve(const ShapeList& in, AttentionDesc* s, int* rank) const {
    *s = desc;
    s->batch = s->heads = s->kv_heads = s->queries = s->keys = kUnknown;
    s->head_size = s->value_size = kUnknown;
    *rank = kUnknown;
    PartialTensorShape read[3];
    for (int i = kV; i >= kQ; --i) {
      TF_RETURN_IF_ERROR(Selected(in, i, &read[i]));
      if (!read[i].unknown_rank()) *rank = read[i].dims();
    }
    const auto note = [&](int i, int64_t* heads, int64_t* rows, int64_t* size) {
      return NoteTensor(i, read[i], *rank, &s->batch, heads, rows, size);
    };
    TF_RETURN_IF_ERROR(note(kQ, &s->heads, &s->queries, &s->head_size));
    TF_RETURN_IF_ERROR(note(kK, &s->kv_heads, &s->keys, &s->head_size));
    TF_RETURN_IF_ERROR(note(kV, &s->kv_heads, &s->keys, &s->value_size));
    if (s->heads > 0 && s->kv_heads != kUnknown &&
        (s->kv_heads == 0 || s->heads % s->kv_heads != 0)) {
      return Invalid("q has ", s->heads, " heads, no multiple of the ", s->kv_heads, " of k and v");
    }
    if (*rank == kUnknown) return absl::OkStatus();
    for (int i = 0; i < desc.num_biases; ++i) {
      TF_RETURN_IF_ERROR(CheckBias(absl::StrCat("bias ", i), in[kBiases + i], *rank, *s));
    }
    return num_masks > 0 ? CheckBias("mask", in[mask()], *rank, *s) : absl::OkStatus();
  }
  Status Shapes(const ShapeList& in, ShapeList* shapes) const {
    AttentionDesc s;
    int rank;
    TF_RETURN_IF_ERROR(Resolve(in, &s, &rank));
    PartialTensorShape* const dst = &shapes->emplace_back();
    if (rank == kUnknown) return absl::OkStatus();
    std::vector<int64_t> dims = {s.batch, s.queries, s.heads, s.value_size};
    if (axes[kDst] == Axes::kBNTH) std::swap(dims[1], dims[2]);
    if (axes[kDst] == Axes::kTBNH) std::swap(dims[0], dims[1]);
    if (rank == 3) dims.erase(dims.begin() + (axes[kDst] == Axes::kBNTH ? 1 : 2));
    return BuildShape(dims, dst);
  }

  AttentionStrides Strides(int i, int64_t batch, int64_t heads, int64_t rows, int64_t size) const {
    if (axes[i] == Axes::kTBNH) return {heads * size, size, batch * heads * size};
    if (axes[i] == Axes::kBNTH) return {heads * rows * size, rows * size, size};
    return {heads * rows * size, size, heads * size};
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    AttentionDesc d;
    int rank;
    TF_RETURN_IF_ERROR(Resolve(in, &d, &rank));
    d.q = Strides(kQ, d.batch, d.heads, d.queries, d.head_size);
    d.k = Strides(kK, d.batch, d.kv_heads, d.keys, d.head_size);
    d.v = Strides(kV, d.batch, d.kv_heads, d.keys, d.value_size);
    PlaceWithin(in, kQ, &d.q);
    PlaceWithin(in, kK, &d.k);
    PlaceWithin(in, kV, &d.v);
    d.dst = Strides(kDst, d.batch, d.heads, d.queries, d.value_size);
    for (int i = 0; i < d.num_biases; ++i) d.biases[i] = Bias(in[kBiases + i], rank);
    d.has_mask = num_masks > 0;
    if (d.has_mask) d.mask = Bias(in[mask()], rank);
    d.zero_masked = desc.zero_masked && d.has_mask;
    d.rounds = desc.rounds && MultipliesBfloat16(ActiveIsa());  // Others gain nothing.
    return FromCore(MakeAttentionPlan(d, ActiveIsa(), site.threads, plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    AttentionBuffers buffers;
    buffers.q = m.in<float>(kQ);
    buffers.k = m.in<float>(kK);
    buffers.v = m.in<float>(kV);
    for (int i = 0; i < desc.num_biases; ++i) buffers.biases[i] = m.in<float>(kBiases + i);
    if (num_masks > 0) buffers.mask = m.in<uint8_t>(mask());
    buffers.dst = m.out<float>();
    buffers.scratch = m.scratch;
    RunAttention(plan, buffers, pool);
  }
};

const OpRegistration<Attention> attention_registration;

}  // namespace
}  // namespace bd
