#include "cc/kernels/op_sequence.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/public/version.h"
#include "tsl/profiler/lib/traceme.h"

namespace bd {
namespace {

using tensorflow::AllocatorAttributes;
using tensorflow::DataType;
using tensorflow::DataTypeVector;
using tensorflow::InstantiationResult;
using tensorflow::NodeDef;
using tensorflow::NodeProperties;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorId;
using tensorflow::TensorValue;

// The op's types against the function's; `verb` is what the function does with them.
absl::Status CheckTypes(const std::string& function, const char* verb, const char* what,
                        const DataTypeVector& wanted, absl::Span<const DataType> given) {
  if (wanted.size() != given.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(function, " ", verb, " ", wanted.size(), " ", what, "s, got ", given.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == given[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(function, ": ", what, " ", i, " is ",
                                                   tensorflow::DataTypeString(wanted[i]), ", got ",
                                                   tensorflow::DataTypeString(given[i])));
  }
  return absl::OkStatus();
}

absl::Status CannotRun(const NodeDef& node, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("node ", node.name(), " (", node.op(), ") ", why,
                                                 "; call the function as TensorFlow does"));
}

}  // namespace

// Turns nodes into steps, depth first: a node follows what it reads.
class OpSequence::Builder {
 public:
  Builder(OpKernelConstruction* ctx, const InstantiationResult& body, OpSequence* sequence)
      : ctx_(ctx), body_(body), sequence_(*sequence) {
    for (const NodeDef& node : body_.nodes) nodes_[node.name()] = {&node};
  }

  absl::Status Build() {
    results_.resize(body_.ret_types.size());
    for (const NodeDef& node : body_.nodes) {  // arguments have their places by index
      if (node.op() != "_Arg") continue;
      Node& known = nodes_[node.name()];
      known.first_output = static_cast<int>(node.attr().at("index").i());
      known.state = Node::kDone;
    }
    sequence_.num_tensors_ = static_cast<int>(body_.arg_types.size());
    for (const NodeDef& node : body_.nodes) TF_RETURN_IF_ERROR(Visit(&nodes_[node.name()]));
    sequence_.results_ = results_;
    MarkLastUses();
    return absl::OkStatus();
  }

 private:
  struct Node {
    const NodeDef* def = nullptr;
    enum { kNew, kOpen, kDone } state = kNew;
    int first_output = 0;
  };

  absl::Status Visit(Node* node) {
    if (node->state == Node::kDone) return absl::OkStatus();
    if (node->state == Node::kOpen) return CannotRun(*node->def, "is part of a loop");
    node->state = Node::kOpen;
    std::vector<Use> inputs;
    for (const std::string& input : node->def->input()) {
      const TensorId id = tensorflow::ParseTensorName(input);
      const auto source = nodes_.find(std::string(id.node()));
      if (source == nodes_.end()) return CannotRun(*node->def, "reads a node that is not there");
      TF_RETURN_IF_ERROR(Visit(&source->second));
      if (id.index() >= 0) inputs.push_back({source->second.first_output + id.index(), false});
    }
    node->state = Node::kDone;
    if (node->def->op() == "_Retval") {
      results_[node->def->attr().at("index").i()] = inputs[0].tensor;
      return absl::OkStatus();
    }
    return AddStep(node, std::move(inputs));
  }

  absl::Status AddStep(Node* node, std::vector<Use> inputs) {
    std::shared_ptr<const NodeProperties> properties;
    TF_RETURN_IF_ERROR(NodeProperties::CreateFromNodeDef(
        *node->def, tensorflow::OpRegistry::Global(), &properties));
    for (DataType type : properties->input_types) {
      if (tensorflow::IsRefType(type)) return CannotRun(*node->def, "reads a reference");
    }
    OpKernel* kernel;
    TF_RETURN_IF_ERROR(tensorflow::CreateOpKernel(
        ctx_->device_type(), ctx_->device(), ctx_->device()->GetAllocator(AllocatorAttributes()),
        ctx_->function_library(), ctx_->resource_manager(), properties, TF_GRAPH_DEF_VERSION,
        &kernel));
    Step step;
    step.kernel.reset(kernel);
    if (kernel->AsAsync() != nullptr) return CannotRun(*node->def, "is asynchronous");
    step.inputs = std::move(inputs);
    step.first_output = node->first_output = sequence_.num_tensors_;
    sequence_.num_tensors_ += kernel->num_outputs();
    const size_t outputs = kernel->num_outputs();
    if (sequence_.output_attributes_.size() < outputs) sequence_.output_attributes_.resize(outputs);
    sequence_.steps_.push_back(std::move(step));
    return absl::OkStatus();
  }

  void MarkLastUses() {
    std::vector<bool> read_later(sequence_.num_tensors_, false);
    for (int tensor : results_) read_later[tensor] = true;
    for (auto step = sequence_.steps_.rbegin(); step != sequence_.steps_.rend(); ++step) {
      for (auto use = step->inputs.rbegin(); use != step->inputs.rend(); ++use) {
        use->last = !read_later[use->tensor];
        read_later[use->tensor] = true;
      }
    }
  }

  OpKernelConstruction* const ctx_;
  const InstantiationResult& body_;
  OpSequence& sequence_;
  std::unordered_map<std::string, Node> nodes_;
  std::vector<int> results_;
};

absl::Status OpSequence::Make(OpKernelConstruction* ctx, const tensorflow::FunctionDef& function,
                              OpSequence* sequence) {
  const tensorflow::FunctionLibraryDefinition* library =
      ctx->function_library()->GetFunctionLibraryDefinition();
  InstantiationResult body;
  TF_RETURN_IF_ERROR(tensorflow::InstantiateFunction(
      function, tensorflow::AttrSlice(),
      [&](const std::string& op, const tensorflow::OpDef** def) {
        return library->LookUpOpDef(op, def);
      },
      &body));
  const std::string& name = function.signature().name();
  TF_RETURN_IF_ERROR(CheckTypes(name, "takes", "argument", body.arg_types, ctx->input_types()));
  TF_RETURN_IF_ERROR(CheckTypes(name, "returns", "result", body.ret_types, ctx->output_types()));
  *sequence = OpSequence();
  return Builder(ctx, body, sequence).Build();
}

absl::Status OpSequence::RunStep(const Step& step, OpKernelContext::Params* params,
                                 std::vector<Tensor>* tensors) const {
  // Arguments of this op alone. A tensor that is read again keeps its reference in
  // `tensors`, so that no op takes its memory for a result.
  absl::InlinedVector<Tensor, 8> held;
  absl::InlinedVector<TensorValue, 8> inputs;
  held.reserve(step.inputs.size());
  for (const Use& use : step.inputs) {
    Tensor& tensor = (*tensors)[use.tensor];
    if (use.last) {
      held.push_back(std::move(tensor));
    } else {
      held.push_back(tensor);
    }
    inputs.emplace_back(&held.back());
  }
  params->inputs = inputs;
  params->op_kernel = step.kernel.get();
  const int outputs = step.kernel->num_outputs();
  OpKernelContext ctx(params, outputs);
  {
    const tsl::profiler::TraceMe profiled(
        [&] { return absl::StrCat(step.kernel->name(), ":", step.kernel->type_string()); });
    step.kernel->Compute(&ctx);
  }
  TF_RETURN_IF_ERROR(ctx.status());
  for (int i = 0; i < outputs; ++i) {
    const std::unique_ptr<Tensor> output(ctx.release_output(i).tensor);
    if (output == nullptr) {
      return absl::InternalError(absl::StrCat("output ", i, " was not set"));
    }
    (*tensors)[step.first_output + i] = std::move(*output);
  }
  return absl::OkStatus();
}

absl::Status OpSequence::Run(OpKernelContext::Params params, absl::Span<const Tensor> arguments,
                             std::vector<Tensor>* results) const {
  std::vector<Tensor> tensors(num_tensors_);
  std::copy(arguments.begin(), arguments.end(), tensors.begin());
  params.run_all_kernels_inline = true;
  params.output_attr_array = output_attributes_.data();
  for (const Step& step : steps_) {
    const absl::Status status = RunStep(step, &params, &tensors);
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), " [[node ", step.kernel->name(), "]]"));
  }
  results->clear();
  for (int tensor : results_) results->push_back(tensors[tensor]);
  return absl::OkStatus();
}

}  // namespace bd
