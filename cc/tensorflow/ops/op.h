// An op in one file: a struct that says what the op is, and one line that registers it,
//
//   const OpRegistration<Pool> registration;
//
// The struct derives from OpDefaults and says, with those of its members that are others:
//
//   using Plan = ...;                      of cc/core
//   static OpSignature Signature();        name, inputs and outputs
//   void Visit(AttrVisitor& v);            its attributes (attr_visitor.h)
//   Status Check();                        of the attributes, together
//   Status Shapes(const ShapeList& in, ShapeList* dst) const;
//     all inputs against each other, and the shapes of the outputs: while a graph is built of
//     partly known shapes, and before MakePlan of full ones
//   Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const;
//   void Run(const Plan& plan, const LaunchMemory& memory, ThreadPool& pool) const;
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cc/base/verbose.h"
#include "cc/tensorflow/attrs/attr_visitor.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/op_base/plan_cache.h"
#include "cc/tensorflow/op_base/scratchpad.h"
#include "cc/tensorflow/ops/registration.h"
#include "cc/tensorflow/weights/weights_cache.h"

namespace bd {

using ShapeList = std::vector<PartialTensorShape>;

// What a plan is made for, beside shapes.
struct PlanSite {
  int threads = 1;
  bool changes_weights = false;  // they are packed for each execution anew
};

// An input of weights: the first element of it that the op reads, how often they change, and how
// many it reads; -1: all from that one on.
struct WeightsUse {
  int64_t offset;
  WeightsChange change;
  int64_t elements = -1;
};

struct OpDefaults {
  DataType dtype = DataType::f32;  // of T
  bool keeps_scratch = false;      // scratchpad_mode: between executions

  // The input whose shape, with all that TensorFlow knows of it, the first output has.
  static constexpr int kLike = -1;
  // Whether the first dimensions of the first input and of the first output are the same.
  bool keeps_batch() const { return true; }
  Status Check() const { return absl::OkStatus(); }
  // Sizes of outputs that only the plan knows.
  template <typename Plan>
  static void CompleteShapes(const Plan&, ShapeList*) {}

  // Inputs that are packed; some more must stay in their memory as well.
  static constexpr int kNumWeights = 0;
  static constexpr std::array<int, 0> kFixedInputs = {};  // those of weights first
  std::vector<int> fixed_inputs() const { return {}; }    // and those that attributes say
  // WeightsUse weights_use(int i) const;
  // PackRequest Weights(const Plan& plan, int i, OpKernelContext* ctx, WeightsPacker pack) const;
  // void Pack(const Plan& plan, int i, const void* plain, OpKernelContext* ctx, void* packed,
  //           ThreadPool& pool) const;

  // Inputs whose memory the first output may take.
  std::vector<int> reusable_inputs() const { return {}; }
  // Whether the first output begins as what the last input holds.
  bool has_into() const { return false; }
  // Whether the output is the first input.
  template <typename Plan>
  static bool Forwards(const Plan&) {
    return false;
  }
  // Which inputs and outputs have channel tails; shapes may not fit yet.
  BlockedTensors Blocked(const ShapeList&) const { return {}; }

  // What an execution has in scratch: the plan's `scratch`, if it has one.
  template <typename Plan>
  static auto ScratchOf(const Plan& plan) -> decltype((plan.scratch)) {
    return plan.scratch;
  }
  static ScratchBook ScratchOf(...) { return {}; }
  // All but that, which the verbose log shows, too.
  template <typename Plan>
  static void FillMemoryPlan(const Plan&, MemoryPlan*) {}

  void VisitScratchpadMode(AttrVisitor& v) {
    v.Choice("scratchpad_mode", &keeps_scratch, {{"user", false}, {"library", true}}, "user");
  }
};

// An op that makes one activation of another: their types, channels, and the wider tensors of which
// they are parts.
struct ActivationOp : OpDefaults {
  TypesAttrs types;
  Layout layout = Layout::nChw16c;
  int64_t channels = 0;
  ChannelPart src_part;
  DstPart dst_part;

  void VisitParts(AttrVisitor& v) {
    src_part.Visit("src_part", v);
    dst_part.Visit(v);
    dst_part.VisitIntoType(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(types.Check());
    TF_RETURN_IF_ERROR(dst_part.CheckIntoType(types.dst));
    TF_RETURN_IF_ERROR(src_part.Check("src_part", layout, channels));
    return dst_part.Check(layout, channels);
  }

  Status SrcPlane(const PartialTensorShape& src, Plane* plane) const {
    return ReadPlane("src", src, layout, src_part.tensor_channels(channels), plane);
  }
  // `inputs` end with into, if it is there.
  Status DstShape(const Plane& plane, const ShapeList& inputs, ShapeList* dst) const {
    TF_RETURN_IF_ERROR(
        MakeShape(layout, dst_part.tensor_channels(channels), plane, &dst->emplace_back()));
    return dst_part.CheckInto(inputs, dst->front());
  }
  // What a description says of both tensors.
  template <typename Desc>
  Status SetTensors(const Plane& src_plane, const Plane& dst_plane, Desc* desc) const {
    desc->src_quantization = types.of_src();
    desc->dst_quantization = types.of_dst();
    TF_RETURN_IF_ERROR(MakeView(types.src, layout, channels, src_part, src_plane, &desc->src));
    return MakeView(types.dst, layout, channels, dst_part, dst_plane, &desc->dst);
  }

  template <typename Plan>
  const void* Src(const Plan& plan, const LaunchMemory& m) const {
    return m.in<void>(0, src_part.offset(plan.desc.src));
  }
  template <typename Plan>
  void* Dst(const Plan& plan, const LaunchMemory& m) const {
    return m.out<void>(0, dst_part.offset(plan.desc.dst));
  }

  bool has_into() const { return dst_part.has_into(); }
  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors()
        .Input(0, src_part, layout, channels, types.of_src())
        .Output(0, dst_part, layout, channels, types.of_dst());
  }
};

// What an op makes of input shapes.
template <typename Op>
struct OpPlan {
  typename Op::Plan core;
  std::vector<TensorShape> dst_shapes;
  int64_t dst_elements = 0;  // of all outputs

  static Status Make(const Op& op, const ShapeList& inputs, const PlanSite& site, OpPlan* plan) {
    for (const PartialTensorShape& shape : inputs) {
      PartialTensorShape fits;
      TF_RETURN_IF_ERROR(BuildShape(shape.dim_sizes(), &fits));
    }
    ShapeList dst;
    TF_RETURN_IF_ERROR(op.Shapes(inputs, &dst));
    TF_RETURN_IF_ERROR(op.MakePlan(inputs, site, &plan->core));
    TF_RETURN_IF_ERROR(FromCore(Op::ScratchOf(plan->core).Check()));
    Op::CompleteShapes(plan->core, &dst);
    for (const PartialTensorShape& shape : dst) {
      if (!shape.AsTensorShape(&plan->dst_shapes.emplace_back())) {
        return Invalid("the output shape ", shape.DebugString(), " is not a tensor's");
      }
      plan->dst_elements += plan->dst_shapes.back().num_elements();
    }
    return absl::OkStatus();
  }
};

// What an op resolves in an execution.
template <typename Op>
struct OpLaunch {
  std::shared_ptr<const OpPlan<Op>> plan;
  std::array<WeightsLease, Op::kNumWeights> weights;

  int64_t scratch_bytes() const { return Op::ScratchOf(plan->core).bytes(); }
  // False if it holds memory of this execution.
  bool lasts() const {
    return std::all_of(weights.begin(), weights.end(), [](const auto& w) { return w.lasts(); });
  }
  int64_t bytes_packed() const {
    int64_t bytes = 0;
    for (const WeightsLease& lease : weights) bytes += lease.bytes_packed();
    return bytes;
  }
};

// The kernel of an op.
template <typename Op>
class KernelOf : public PoolOpKernel {
 public:
  explicit KernelOf(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadAttrsOf(ctx, &op_));
    scratchpad_.Set(op_.keeps_scratch);
    reusable_inputs_ = op_.reusable_inputs();
    fixed_inputs_ = op_.fixed_inputs();
    fixed_inputs_.insert(fixed_inputs_.end(), Op::kFixedInputs.begin(), Op::kFixedInputs.end());
    if constexpr (Op::kNumWeights > 0) {
      for (int i = 0; i < Op::kNumWeights; ++i) {
        const WeightsUse use = op_.weights_use(i);
        weights_[i].emplace(use.offset, use.change, use.elements);
      }
    }
  }

 private:
  // The kernel outlives it.
  class Prepared : public PreparedLaunch {
   public:
    Prepared(const KernelOf* kernel, OpLaunch<Op> launch, int into, size_t dst_bytes)
        : kernel_(*kernel), into_(into), dst_bytes_(dst_bytes), launch_(std::move(launch)) {}
    void Run(const LaunchMemory& memory) const override {
      if (into_ >= 0 && memory.outputs[0] != memory.inputs[into_]) {
        memcpy(memory.outputs[0], memory.inputs[into_], dst_bytes_);
      }
      kernel_.Run(launch_, memory);
    }
    int64_t scratch_bytes() const override { return launch_.scratch_bytes(); }
    absl::Span<const int> fixed_inputs() const override { return kernel_.fixed_inputs_; }

   private:
    const KernelOf& kernel_;
    const int into_;
    const size_t dst_bytes_;
    const OpLaunch<Op> launch_;
  };

  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>* prepared) override {
    OpLaunch<Op> launch;
    OP_REQUIRES_OK(ctx, Resolve(ctx, &launch));
    const OpPlan<Op>& plan = *launch.plan;
    if (Op::Forwards(plan.core)) {
      return RunLogged([&] { return Describe(ctx, launch) + " in place"; },
                       [&] { ctx->set_output(0, ctx->input(0)); });
    }
    Tensor* dst;
    int reused;
    OP_REQUIRES_OK(
        ctx, AllocateDst(ctx, op_.has_into(), reusable_inputs_, plan.dst_shapes[0], &dst, &reused));
    const int64_t dst_bytes = dst->TotalBytes();
    absl::InlinedVector<void*, 4> outputs = {dst->data()};
    for (int i = 1; i < ctx->num_outputs(); ++i) {
      OP_REQUIRES_OK(ctx, ctx->allocate_output(i, plan.dst_shapes[i], &dst));
      PreferHugePages(dst->data(), dst->TotalBytes());
      outputs.push_back(dst->data());
    }
    if (plan.dst_elements == 0) return;
    ScratchpadMemory scratchpad;
    OP_REQUIRES_OK(ctx, scratchpad_.Take(ctx, launch.scratch_bytes(), &scratchpad));
    absl::InlinedVector<const void*, 8> inputs;
    for (int i = 0; i < ctx->num_inputs(); ++i) inputs.push_back(ctx->input(i).data());
    const LaunchMemory memory = {inputs.data(), outputs.data(), scratchpad.data()};
    // Whether dst took the memory of an input: a sum's operand, or what it is written into.
    RunLogged([&] { return Describe(ctx, launch) + (reused >= 0 ? " in place" : ""); },
              [&] { Run(launch, memory); });
    // Scratch that the kernel keeps is this kernel's.
    if (prepared == nullptr || !launch.lasts()) return;
    if (scratchpad_.keeps() && launch.scratch_bytes() > 0) return;
    *prepared = std::make_unique<Prepared>(this, std::move(launch),
                                           op_.has_into() ? ctx->num_inputs() - 1 : -1, dst_bytes);
  }

  // After all checks of the inputs.
  Status Resolve(OpKernelContext* ctx, OpLaunch<Op>* launch) {
    PlanSite site = {pool().num_threads(), false};
    for (auto& weights : weights_) site.changes_weights |= weights->changing();
    const auto make = [&](OpPlan<Op>* made) {
      return OpPlan<Op>::Make(op_, InputShapes(ctx), site, made);
    };
    TF_RETURN_IF_ERROR(plans_[site.changes_weights].Get(ctx, make, &launch->plan));
    if (launch->plan->dst_elements == 0) return absl::OkStatus();
    if constexpr (Op::kNumWeights > 0) TF_RETURN_IF_ERROR(TakeWeights(ctx, launch));
    return absl::OkStatus();
  }

  Status TakeWeights(OpKernelContext* ctx, OpLaunch<Op>* launch) {
    const typename Op::Plan& plan = launch->plan->core;
    for (int i = 0; i < Op::kNumWeights; ++i) {
      const auto pack = [&](const void* plain, void* packed) {
        op_.Pack(plan, i, plain, ctx, packed, pool());
      };
      TF_RETURN_IF_ERROR(weights_[i]->Take(ctx, Op::kFixedInputs[i],
                                           op_.Weights(plan, i, ctx, pack), &launch->weights[i]));
    }
    return absl::OkStatus();
  }

  void Run(const OpLaunch<Op>& launch, LaunchMemory memory) const {
    memory.weights = launch.weights.data();
    op_.Run(launch.plan->core, memory, pool());
  }

  BlockedTensors Blocked(OpKernelContext* ctx) const override {
    return op_.Blocked(InputShapes(ctx));
  }
  // The verbose log's line.
  std::string Describe(OpKernelContext* ctx, const OpLaunch<Op>& launch) const {
    MemoryPlan plan;
    Op::FillMemoryPlan(launch.plan->core, &plan);
    std::string line = DescribeExecution(ctx, plan, launch.plan->dst_shapes);
    if (const int64_t bytes = launch.scratch_bytes()) {
      absl::StrAppend(&line, " scratch ", bytes, " ", scratchpad_.mode());
    }
    if (const int64_t bytes = launch.bytes_packed()) absl::StrAppend(&line, " packs ", bytes);
    return line;
  }
  void ReleaseWeights() override {
    for (auto& weights : weights_) weights->Release();
  }

  Op op_;
  std::vector<int> reusable_inputs_, fixed_inputs_;
  Scratchpad scratchpad_;
  // The second for weights that change.
  PlanCache<OpPlan<Op>> plans_[Op::kNumWeights > 0 ? 2 : 1];
  std::array<std::optional<WeightsCache>, Op::kNumWeights> weights_;
};

// Defines the op, registers its kernel and how its memory is planned. To be defined at namespace
// scope only.
template <typename Op, typename Kernel = KernelOf<Op>>
class OpRegistration {
 public:
  OpRegistration() {
    RegisterOp(
        Op::Signature(), [](AttrVisitor& v) { Op().Visit(v); }, InferShapes,
        [](OpKernelConstruction* ctx) -> OpKernel* { return new Kernel(ctx); });
    if constexpr (std::is_same_v<Kernel, KernelOf<Op>>)
      RegisterMemoryPlan(Op::Signature().name, Plan);
  }

 private:
  static Status InferShapes(tensorflow::shape_inference::InferenceContext* c) {
    Op op;
    TF_RETURN_IF_ERROR(ReadAttrsOf(c, &op));
    ShapeList dst;
    TF_RETURN_IF_ERROR(op.Shapes(InputShapes(c), &dst));
    return SetOutputShapes(c, dst, Op::kLike, op.keeps_batch());
  }

  static Status Plan(const AttrVisitor::Lookup& node, const ShapeList& inputs, int threads,
                     MemoryPlan* memory) {
    Op op;
    TF_RETURN_IF_ERROR(ReadAttrs(node, &op));
    OpPlan<Op> plan;
    TF_RETURN_IF_ERROR(OpPlan<Op>::Make(op, inputs, {threads, false}, &plan));
    if (plan.dst_elements == 0) return absl::OkStatus();
    memory->scratch = Op::ScratchOf(plan.core);
    Op::FillMemoryPlan(plan.core, memory);
    return absl::OkStatus();
  }
};

}  // namespace bd
