// BlockdnnRnn, and what its gradient shares with it.
#include "cc/core/rnn/rnn.h"

#include "cc/tensorflow/ops/products/rnn_attrs.h"

namespace bd {
namespace {

// `shape` must have `dims.size()` dimensions; each known one that is known here, too, must
// be the same, and what is not known here becomes known.
Status Match(const char* what, const char* form, const PartialTensorShape& shape,
             const std::vector<int64_t*>& dims) {
  if (shape.unknown_rank()) return absl::OkStatus();
  bool fits = shape.dims() == static_cast<int>(dims.size());
  for (int i = 0; fits && i < shape.dims(); ++i) {
    const int64_t size = shape.dim_size(i);
    if (size == kUnknown) continue;
    if (*dims[i] == kUnknown) *dims[i] = size;
    fits = *dims[i] == size;
  }
  if (fits) return absl::OkStatus();
  std::string wanted;
  for (const int64_t* dim : dims) {
    absl::StrAppend(&wanted, wanted.empty() ? "" : ", ",
                    *dim == kUnknown ? "?" : absl::StrCat(*dim));
  }
  return Invalid(what, " must be ", form, " = [", wanted, "]; got ", shape.DebugString());
}

struct Rnn : RnnAttrs {
  using Plan = RnnPlan;
  static constexpr int kNumWeights = 1;
  static constexpr std::array<int, 2> kFixedInputs = {kKernel, kRecurrent};
  enum { kDst, kState, kCellState, kWorkspace };

  int num_scales = 0;
  int scales() const { return num_inputs(); }

  static OpSignature Signature() {
    std::vector<const char*> inputs = Inputs();
    inputs[kKernel] = "kernel: weights_type";
    inputs[kRecurrent] = "recurrent_kernel: weights_type";
    inputs.push_back("weight_scales: num_scales * float");
    return {"BlockdnnRnn",
            inputs,
            {"dst: T", "state: T", "cell_state: T", "workspace: T"},
            "See bd.ops.rnn. workspace is what the gradient needs; empty unless training."};
  }

  void Visit(AttrVisitor& v) {
    RnnAttrs::Visit(v);
    v("weights_type: {float, bfloat16, int8} = DT_FLOAT", &desc.weights);
    v("num_scales: int >= 0 = 0", &num_scales);
    v("round_rows: bool = false", &desc.rounds_rows);
  }
  Status Check() const {
    TF_RETURN_IF_ERROR(RnnAttrs::Check());
    const int wanted = desc.weights == DataType::s8 ? 2 : 0;
    if (num_scales == wanted) return absl::OkStatus();
    return Invalid("weights of ", DataTypeName(desc.weights), " have ",
                   wanted == 0 ? "no scales" : "two scales, of kernel and of recurrent_kernel",
                   "; got ", num_scales);
  }

  bool keeps_batch() const { return !time_major || desc.sequences; }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    RnnDesc d;
    TF_RETURN_IF_ERROR(Sizes(in, &d));
    int64_t columns = d.units == kUnknown ? kUnknown : d.gates() * d.units;
    for (int i = 0; i < num_scales; ++i) {
      TF_RETURN_IF_ERROR(Match("weight_scales", "[gates * units]", in[scales() + i], {&columns}));
    }
    TF_RETURN_IF_ERROR(DstShape(d, &dst->emplace_back()));
    const PartialTensorShape none({0});
    TF_RETURN_IF_ERROR(BuildShape({d.batch, d.units}, &dst->emplace_back()));
    dst->push_back(is_lstm() ? dst->back() : none);
    dst->push_back(desc.training ? PartialTensorShape({kUnknown}) : none);
    return absl::OkStatus();
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    TF_RETURN_IF_ERROR(Sizes(in, &plan->desc));
    if (plan->desc.steps == 0 || plan->desc.batch == 0) return absl::OkStatus();
    return FromCore(MakeRnnPlan(RnnDesc(plan->desc), ActiveIsa(), site.threads, plan));
  }
  // The workspace begins on a cache line: TensorFlow aligns tensors to 64 bytes.
  static void CompleteShapes(const Plan& plan, ShapeList* dst) {
    const int64_t kept = static_cast<int64_t>(plan.workspace_bytes / sizeof(float));
    if (plan.desc.training) (*dst)[kWorkspace] = PartialTensorShape({kept});
  }

  WeightsUse weights_use(int) const {
    return {0, constant_weights ? WeightsChange::kNever
               : desc.training  ? WeightsChange::kOften
                                : WeightsChange::kSeldom};
  }
  PackRequest Weights(const Plan& plan, int, OpKernelContext* ctx, WeightsPacker pack) const {
    // Panels are cut by threads.
    return {{"panels", desc.weights, 2 * plan.block + (plan.packed_w.unscale >= 0), "rnn"},
            {plan.desc.inputs, plan.desc.units, plan.desc.gates()},
            plan.packed_floats * static_cast<int64_t>(sizeof(float)),
            0,
            pack,
            &ctx->input(kRecurrent)};
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext* ctx, void* packed,
            ThreadPool& pool) const {
    PackRnnWeights(plan, plain, ctx->input(kRecurrent).data(), static_cast<float*>(packed), pool);
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    const RnnDesc& d = plan.desc;
    if (d.steps == 0) return KeepStates(d, m);
    RnnBuffers b;
    b.packed = m.weights[0].as<float>();
    b.src = SequenceOf(d, m.in<float>(kSrc), d.inputs);
    if (num_scales > 0) {
      b.kernel_scales = m.in<float>(scales());
      b.recurrent_scales = m.in<float>(scales() + 1);
    }
    if (num_biases > 0) b.bias = m.in<float>(kBias);
    if (num_states > 0) b.h0 = m.in<float>(first_state());
    if (num_states > 1) b.c0 = m.in<float>(first_state() + 1);
    if (num_masks > 0) {
      b.mask.data = m.in<bool>(mask());
      b.mask.batch_stride = time_major ? 1 : d.steps;
      b.mask.step_stride = time_major ? d.batch : 1;
    }
    if (num_lengths > 0) b.lengths = m.in<int32_t>(lengths());
    b.dst = DstSequenceOf(d, m.out<float>(kDst));
    b.hn = m.out<float>(kState);
    if (is_lstm()) b.cn = m.out<float>(kCellState);
    b.workspace = m.out<void>(kWorkspace);
    b.scratch = m.scratch;
    RunRnn(plan, b, pool);
  }
  // After no steps the states are as before, and the last output is zero.
  void KeepStates(const RnnDesc& d, const LaunchMemory& m) const {
    const int64_t count = d.batch * d.units;
    if (!desc.sequences) std::fill_n(m.out<float>(kDst), count, 0.f);
    for (int i = 0; i < (is_lstm() ? 2 : 1); ++i) {
      float* const state = m.out<float>(kState + i);
      if (i < num_states) {
        std::copy_n(m.in<float>(first_state() + i), count, state);
      } else {
        std::fill_n(state, count, 0.f);
      }
    }
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    if (plan.desc.steps == 0) return;
    memory->packed_weights = plan.packed_floats * static_cast<int64_t>(sizeof(float));
    memory->blocking = {
        {"units", plan.block}, {"rows", plan.part}, {"steps_at_once", plan.steps_at_once}};
  }
};

const OpRegistration<Rnn> rnn_registration;

}  // namespace

void RnnAttrs::Visit(AttrVisitor& v) {
  v("T: {float} = DT_FLOAT", &dtype);
  v("num_biases: int >= 0", &num_biases);
  v("num_states: int >= 0", &num_states);
  v("num_masks: int >= 0", &num_masks);
  v("num_lengths: int >= 0", &num_lengths);
  v.Choice("cell", &desc.cell,
           {{"vanilla", RnnCell::kVanilla}, {"lstm", RnnCell::kLstm}, {"gru", RnnCell::kGru}});
  v.Choice("activation", &desc.activation,
           {{"tanh", RnnActivation::kTanh},
            {"relu", RnnActivation::kRelu},
            {"sigmoid", RnnActivation::kLogistic},
            {"linear", RnnActivation::kLinear}},
           "tanh");
  v.Choice("recurrent_activation", &desc.recurrent_activation,
           {{"sigmoid", RnnActivation::kLogistic},
            {"hard_sigmoid", RnnActivation::kHardLogistic},
            {"tanh", RnnActivation::kTanh},
            {"relu", RnnActivation::kRelu},
            {"linear", RnnActivation::kLinear}},
           "sigmoid");
  v("reset_after: bool = true", &desc.reset_after);
  v("go_backwards: bool = false", &desc.backwards);
  v("restore_order: bool = false", &desc.reorders);
  v("return_sequences: bool = false", &desc.sequences);
  v("zero_output_for_mask: bool = false", &desc.zeros_masked);
  v("time_major: bool = false", &time_major);
  v("training: bool = false", &desc.training);
  v.Choice("algorithm", &desc.direct, {{"auto", false}, {"direct", true}}, "auto");
  v("constant_weights: bool = false", &constant_weights);
}

Status RnnAttrs::Check() const {
  if (num_biases > 1 || num_masks > 1 || num_lengths > 1) {
    return Invalid("there can be one bias, one mask and one list of lengths at most");
  }
  const int most = is_lstm() ? 2 : 1;
  if (num_states != 0 && num_states != most) {
    return Invalid("cell ", cell_name(), " begins with ", most, " states or none; got ",
                   num_states);
  }
  if (desc.reorders && !desc.backwards) {
    return Invalid("restore_order belongs to go_backwards; leave it out");
  }
  return absl::OkStatus();
}

Status RnnAttrs::Sizes(const ShapeList& in, RnnDesc* sizes) const {
  RnnDesc& s = *sizes;
  s = desc;
  s.batch = s.steps = s.inputs = s.units = kUnknown;
  if (time_major) {
    TF_RETURN_IF_ERROR(
        Match("src", "[steps, batch, inputs]", in[kSrc], {&s.steps, &s.batch, &s.inputs}));
  } else {
    TF_RETURN_IF_ERROR(
        Match("src", "[batch, steps, inputs]", in[kSrc], {&s.batch, &s.steps, &s.inputs}));
  }
  // units from whatever knows it.
  const auto width = [](const PartialTensorShape& shape) {
    if (shape.unknown_rank() || shape.dims() != 2) return kUnknown;
    return static_cast<int64_t>(shape.dim_size(1));
  };
  int64_t columns = width(in[kRecurrent]);
  if (columns == kUnknown) columns = width(in[kKernel]);
  if (columns != kUnknown) {
    if (columns == 0 || columns % desc.gates() != 0) {
      return Invalid("the kernels of cell ", cell_name(), " must have ", desc.gates(),
                     " columns a unit, and at least one unit; got ", columns, " columns");
    }
    s.units = columns / desc.gates();
  }
  TF_RETURN_IF_ERROR(
      Match("recurrent_kernel", "[units, gates * units]", in[kRecurrent], {&s.units, &columns}));
  TF_RETURN_IF_ERROR(
      Match("kernel", "[inputs, gates * units]", in[kKernel], {&s.inputs, &columns}));
  if (num_biases > 0) {
    int64_t two = 2;
    TF_RETURN_IF_ERROR(two_biases()
                           ? Match("bias", "[2, gates * units]", in[kBias], {&two, &columns})
                           : Match("bias", "[gates * units]", in[kBias], {&columns}));
  }
  for (int i = 0; i < num_states; ++i) {
    TF_RETURN_IF_ERROR(
        Match("initial_state", "[batch, units]", in[first_state() + i], {&s.batch, &s.units}));
  }
  if (num_masks > 0) {
    TF_RETURN_IF_ERROR(time_major
                           ? Match("mask", "[steps, batch]", in[mask()], {&s.steps, &s.batch})
                           : Match("mask", "[batch, steps]", in[mask()], {&s.batch, &s.steps}));
  }
  if (num_lengths > 0) {
    TF_RETURN_IF_ERROR(Match("lengths", "[batch]", in[lengths()], {&s.batch}));
  }
  return absl::OkStatus();
}

Status RnnAttrs::DstShape(const RnnDesc& s, PartialTensorShape* dst) const {
  if (!desc.sequences) return BuildShape({s.batch, s.units}, dst);
  if (time_major) return BuildShape({s.steps, s.batch, s.units}, dst);
  return BuildShape({s.batch, s.steps, s.units}, dst);
}

}  // namespace bd
