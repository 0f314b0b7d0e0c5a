#include "cc/tensorflow/regions/op_sequence.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cc/base/verbose.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/public/version.h"

namespace bd {
namespace {

using tensorflow::AllocatorAttributes;
using tensorflow::InstantiationResult;
using tensorflow::NodeDef;
using tensorflow::NodeProperties;
using tensorflow::TensorId;

absl::Status CannotRun(const NodeDef& node, const char* why) {
  return Invalid("node ", node.name(), " (", node.op(), ") ", why,
                 "; call the function as TensorFlow does");
}

}  // namespace

// Turns nodes into steps, depth first: a node follows what it reads.
class OpSequence::Builder {
 public:
  Builder(const KernelSite& site, OpSequence* sequence) : site_(site), sequence_(*sequence) {}

  absl::Status Build(const std::string& function) {
    InstantiationResult body;
    TF_RETURN_IF_ERROR(Instantiate(function, &body));
    sequence_.argument_types_ = body.arg_types;
    sequence_.result_types_ = body.ret_types;
    sequence_.num_tensors_ = static_cast<int>(body.arg_types.size());
    std::vector<int> arguments;
    for (int i = 0; i < sequence_.num_tensors_; ++i) arguments.push_back(i);
    open_functions_.insert(function);
    TF_RETURN_IF_ERROR(AddBody(body, arguments, &sequence_.results_));
    MarkLastUses();
    sequence_.is_repeatable_ = IsRepeatable();
    return absl::OkStatus();
  }

 private:
  struct Node {
    const NodeDef* def = nullptr;
    enum { kNew, kOpen, kDone } state = kNew;
    std::vector<int> outputs;  // tensors
  };
  // A function's nodes and what they have become so far.
  struct Body {
    std::unordered_map<std::string, Node> nodes;
    std::vector<int> results;
  };

  absl::Status Instantiate(const std::string& function, InstantiationResult* body) const {
    const tensorflow::FunctionDef* const def = site_.library->Find(function);
    if (def == nullptr) return Invalid("there is no function ", function);
    return tensorflow::InstantiateFunction(
        *def, tensorflow::AttrSlice(),
        [&](const std::string& op, const tensorflow::OpDef** op_def) {
          return site_.library->LookUpOpDef(op, op_def);
        },
        body);
  }

  absl::Status AddBody(const InstantiationResult& instance, absl::Span<const int> arguments,
                       std::vector<int>* results) {
    Body body;
    body.results.resize(instance.ret_types.size());
    for (const NodeDef& def : instance.nodes) {
      Node& node = body.nodes[def.name()];
      node.def = &def;
      if (def.op() != "_Arg") continue;
      node.outputs = {arguments[def.attr().at("index").i()]};
      node.state = Node::kDone;
    }
    for (const NodeDef& def : instance.nodes) {
      TF_RETURN_IF_ERROR(Visit(&body, &body.nodes[def.name()]));
    }
    *results = std::move(body.results);
    return absl::OkStatus();
  }

  absl::Status Visit(Body* body, Node* node) {
    if (node->state == Node::kDone) return absl::OkStatus();
    if (node->state == Node::kOpen) return CannotRun(*node->def, "is part of a loop");
    node->state = Node::kOpen;
    std::vector<int> inputs;
    for (const std::string& input : node->def->input()) {
      const TensorId id = tensorflow::ParseTensorName(input);
      const auto source = body->nodes.find(std::string(id.node()));
      if (source == body->nodes.end()) {
        return CannotRun(*node->def, "reads a node that is not there");
      }
      TF_RETURN_IF_ERROR(Visit(body, &source->second));
      if (id.index() >= 0) inputs.push_back(source->second.outputs[id.index()]);
    }
    node->state = Node::kDone;
    const std::string& op = node->def->op();
    if (op == "_Retval") {
      body->results[node->def->attr().at("index").i()] = inputs[0];
    } else if (op == "Identity") {  // every function ends in some
      node->outputs = {inputs[0]};
    } else if (op == kRegionOp || op == "PartitionedCall" || op == "StatefulPartitionedCall") {
      return AddFunction(node, inputs);
    } else {
      return AddStep(node, inputs);
    }
    return absl::OkStatus();
  }

  absl::Status AddFunction(Node* node, absl::Span<const int> arguments) {
    tensorflow::NameAttrList function;
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(*node->def, "f", &function));
    if (open_functions_.count(function.name()) > 0) return CannotRun(*node->def, "calls itself");
    InstantiationResult instance;
    TF_RETURN_IF_ERROR(Instantiate(function.name(), &instance));
    if (instance.arg_types.size() != arguments.size()) {
      return CannotRun(*node->def, "has not the inputs that its function takes");
    }
    open_functions_.insert(function.name());
    TF_RETURN_IF_ERROR(AddBody(instance, arguments, &node->outputs));
    open_functions_.erase(function.name());
    return absl::OkStatus();
  }

  absl::Status AddStep(Node* node, absl::Span<const int> inputs) {
    std::shared_ptr<const NodeProperties> properties;
    TF_RETURN_IF_ERROR(NodeProperties::CreateFromNodeDef(
        *node->def, tensorflow::OpRegistry::Global(), &properties));
    for (tensorflow::DataType type : properties->input_types) {
      if (tensorflow::IsRefType(type)) return CannotRun(*node->def, "reads a reference");
    }
    OpKernel* kernel;
    TF_RETURN_IF_ERROR(tensorflow::CreateOpKernel(
        tensorflow::DEVICE_CPU, site_.device, site_.device->GetAllocator(AllocatorAttributes()),
        site_.runtime, site_.resources, properties, TF_GRAPH_DEF_VERSION, &kernel));
    Step step;
    step.kernel.reset(kernel);
    if (kernel->AsAsync() != nullptr) return CannotRun(*node->def, "is asynchronous");
    for (int tensor : inputs) step.inputs.push_back({tensor, false});
    step.first_output = sequence_.num_tensors_;
    const size_t outputs = kernel->num_outputs();
    for (size_t i = 0; i < outputs; ++i) node->outputs.push_back(sequence_.num_tensors_++);
    if (sequence_.output_attributes_.size() < outputs) sequence_.output_attributes_.resize(outputs);
    sequence_.steps_.push_back(std::move(step));
    return absl::OkStatus();
  }

  void MarkLastUses() {
    std::vector<bool> read_later(sequence_.num_tensors_, false);
    for (int tensor : sequence_.results_) read_later[tensor] = true;
    for (auto step = sequence_.steps_.rbegin(); step != sequence_.steps_.rend(); ++step) {
      for (auto use = step->inputs.rbegin(); use != step->inputs.rend(); ++use) {
        use->last = !read_later[use->tensor];
        read_later[use->tensor] = true;
      }
    }
  }

  // What logs or checks every op is not to be passed by.
  bool IsRepeatable() const {
    if (VerboseEnabled() || TailChecksEnabled()) return false;
    return std::none_of(sequence_.steps_.begin(), sequence_.steps_.end(), [](const Step& step) {
      const std::string& op = step.kernel->type_string();
      const tensorflow::OpDef* def = nullptr;
      return op != "ReadVariableOp" &&
             (!tensorflow::OpRegistry::Global()->LookUpOpDef(op, &def).ok() || def->is_stateful());
    });
  }

  const KernelSite site_;
  OpSequence& sequence_;
  std::unordered_set<std::string> open_functions_;  // on the way from the root to here
};

absl::Status OpSequence::Make(const KernelSite& site, const std::string& function,
                              OpSequence* sequence) {
  *sequence = OpSequence();
  return Builder(site, sequence).Build(function);
}

void OpSequence::Complete(OpKernelContext::Params* params) const {
  params->run_all_kernels_inline = true;
  params->output_attr_array = output_attributes_.data();
}

void OpSequence::ReleaseWeights() const {
  for (const Step& step : steps_) {
    PoolOpKernel* const own = step.own_kernel();
    if (own != nullptr) own->ReleaseWeights();
  }
}

absl::Status OpSequence::Run(OpKernelContext::Params* params, absl::Span<const Tensor> arguments,
                             Recording* recording, std::vector<Tensor>* results) const {
  std::vector<Tensor> tensors(num_tensors_);
  std::copy(arguments.begin(), arguments.end(), tensors.begin());
  for (const Step& step : steps_) {
    std::unique_ptr<PreparedLaunch> prepared;
    TF_RETURN_IF_ERROR(CheckCancelled(*params));
    TF_RETURN_IF_ERROR(step.Run(params, &tensors, recording == nullptr ? nullptr : &prepared));
    if (recording != nullptr) recording->Add(step, std::move(prepared), tensors);
  }
  results->clear();
  for (int tensor : results_) results->push_back(tensors[tensor]);
  return absl::OkStatus();
}

}  // namespace bd
