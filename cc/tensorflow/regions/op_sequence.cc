#include "cc/tensorflow/regions/op_sequence.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/public/version.h"

namespace bd {
namespace {

using tensorflow::AllocatorAttributes;

using tensorflow::DataTypeVector;
using tensorflow::InstantiationResult;
using tensorflow::NodeDef;
using tensorflow::NodeProperties;
using tensorflow::TensorId;

// The op's types against the function's; `verb` is what the function does with them.
absl::Status CheckTypes(const std::string& function, const char* verb, const char* what,
                        const DataTypeVector& wanted,
                        absl::Span<const tensorflow::DataType> given) {
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

  absl::Status Build(bool keeps_memory) {
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
    if (keeps_memory && CanBeGivenUp()) sequence_.prepared_ = std::make_unique<PreparedRuns>();
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
    std::vector<TensorUse> inputs;
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
    if (node->def->op() == "Identity") {  // every function ends in some
      node->first_output = inputs[0].tensor;
      return absl::OkStatus();
    }
    return AddStep(node, std::move(inputs));
  }

  absl::Status AddStep(Node* node, std::vector<TensorUse> inputs) {
    std::shared_ptr<const NodeProperties> properties;
    TF_RETURN_IF_ERROR(NodeProperties::CreateFromNodeDef(
        *node->def, tensorflow::OpRegistry::Global(), &properties));
    for (tensorflow::DataType type : properties->input_types) {
      if (tensorflow::IsRefType(type)) return CannotRun(*node->def, "reads a reference");
    }
    OpKernel* kernel;
    TF_RETURN_IF_ERROR(tensorflow::CreateOpKernel(
        ctx_->device_type(), ctx_->device(), ctx_->device()->GetAllocator(AllocatorAttributes()),
        ctx_->function_library(), ctx_->resource_manager(), properties, TF_GRAPH_DEF_VERSION,
        &kernel));
    SequenceStep step;
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

  // Whether nobody notices that a run stops halfway and starts again. What logs or checks
  // every op is not to be passed by either.
  bool CanBeGivenUp() const {
    if (VerboseEnabled() || TailChecksEnabled()) return false;
    return std::none_of(sequence_.steps_.begin(), sequence_.steps_.end(), [](const auto& step) {
      const std::string& op = step.kernel->type_string();
      const tensorflow::OpDef* def = nullptr;
      return op != "ReadVariableOp" &&
             (!tensorflow::OpRegistry::Global()->LookUpOpDef(op, &def).ok() || def->is_stateful());
    });
  }

  OpKernelConstruction* const ctx_;
  const InstantiationResult& body_;
  OpSequence& sequence_;
  std::unordered_map<std::string, Node> nodes_;
  std::vector<int> results_;
};

absl::Status OpSequence::Make(OpKernelConstruction* ctx, const tensorflow::FunctionDef& function,
                              bool keeps_memory, OpSequence* sequence) {
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
  return Builder(ctx, body, sequence).Build(keeps_memory);
}

absl::Status OpSequence::RunSteps(OpKernelContext::Params* params,
                                  absl::Span<const Tensor> arguments, Recording* recording,
                                  std::vector<Tensor>* results) const {
  std::vector<Tensor> tensors(num_tensors_);
  std::copy(arguments.begin(), arguments.end(), tensors.begin());
  for (const SequenceStep& step : steps_) {
    std::unique_ptr<PreparedLaunch> prepared;
    TF_RETURN_IF_ERROR(step.Run(params, &tensors, recording == nullptr ? nullptr : &prepared));
    if (recording != nullptr) recording->Add(step, std::move(prepared), tensors);
  }
  results->clear();
  for (int tensor : results_) results->push_back(tensors[tensor]);
  return absl::OkStatus();
}

void OpSequence::Complete(OpKernelContext::Params* params) const {
  params->run_all_kernels_inline = true;
  params->output_attr_array = output_attributes_.data();
}

std::unique_ptr<OpSequence::Started> OpSequence::Start(std::shared_ptr<const OpSequence> sequence,
                                                       OpKernelContext::Params params,
                                                       absl::Span<const Tensor> arguments,
                                                       std::vector<Tensor>* results) {
  if (sequence->prepared_ == nullptr) return nullptr;
  sequence->Complete(&params);
  auto started = std::make_unique<Started>();
  sequence->prepared_->Lend(params, arguments, &started->lease_);
  *results = started->lease_.Expected();
  if (results->empty()) return nullptr;
  started->sequence_ = std::move(sequence);
  started->params_ = std::move(params);
  return started;
}

absl::Status OpSequence::Started::Finish(bool* done) {
  std::vector<Tensor> results;
  return lease_.Finish(&params_, &results, done);
}

absl::Status OpSequence::Run(OpKernelContext::Params params, absl::Span<const Tensor> arguments,
                             std::vector<Tensor>* results) const {
  Complete(&params);
  if (prepared_ == nullptr) return RunSteps(&params, arguments, nullptr, results);
  PreparedRuns::Lease lease;
  bool record;
  prepared_->Take(params, arguments, &lease, &record);
  if (lease) {
    bool done;
    const absl::Status status = lease.Finish(&params, results, &done);
    if (done) return status;
  }
  if (!record) return RunSteps(&params, arguments, nullptr, results);
  Recording recording(arguments, num_tensors_);
  TF_RETURN_IF_ERROR(RunSteps(&params, arguments, &recording, results));
  std::shared_ptr<const PreparedRun> run =
      PreparedRun::Make(steps_, results_, arguments.size(), std::move(recording));
  if (run != nullptr) prepared_->Add(std::move(run), arguments);
  return absl::OkStatus();
}

}  // namespace bd
