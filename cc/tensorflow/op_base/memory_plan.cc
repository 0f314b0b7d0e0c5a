#include "cc/tensorflow/op_base/memory_plan.h"

#include <map>

#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"

namespace bd {
namespace {

std::map<std::string, MemoryPlanFn>& Rows() {
  static auto* rows = new std::map<std::string, MemoryPlanFn>;
  return *rows;
}

// Plans trust a node as they do in a graph, which TensorFlow has checked.
Status CheckNode(const tensorflow::NodeDef& node, size_t inputs) {
  const tensorflow::OpDef* op;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op));
  for (const tensorflow::OpDef::AttrDef& attr : op->attr()) {
    const auto value = node.attr().find(attr.name());
    if (value == node.attr().end()) return Invalid(node.op(), " needs attribute ", attr.name());
    TF_RETURN_IF_ERROR(tensorflow::ValidateAttrValue(value->second, attr));
  }
  tensorflow::DataTypeVector types;
  TF_RETURN_IF_ERROR(tensorflow::InputTypesForNode(node, *op, &types));
  if (types.size() == inputs) return absl::OkStatus();
  return Invalid(node.op(), " takes ", types.size(), " inputs, got the shapes of ", inputs);
}

Status PlanMemory(const std::string& node_def, const std::vector<PartialTensorShape>& inputs,
                  int threads, MemoryPlan* plan) {
  tensorflow::NodeDef node;
  if (!node.ParseFromString(node_def)) return Invalid("this is not a serialised NodeDef");
  TF_RETURN_IF_ERROR(CheckNode(node, inputs.size()));
  const auto row = Rows().find(node.op());
  if (row == Rows().end()) return absl::OkStatus();
  const tensorflow::AttrSlice attrs(node);
  return row->second([&](absl::string_view name) { return attrs.Find(name); }, inputs, threads,
                     plan);
}

// Names are identifiers of our own: nothing needs escaping.
std::string ToJson(const MemoryPlan& plan) {
  const auto piece = [](std::string* out, const ScratchBook::Entry& e) {
    absl::StrAppend(out, "\"", e.name, "\": {\"copies\": ", e.copies, ", \"bytes\": ", e.bytes,
                    "}");
  };
  const auto size = [](std::string* out, const std::pair<const char*, int64_t>& s) {
    absl::StrAppend(out, "\"", s.first, "\": ", s.second);
  };
  return absl::StrCat("{\"algorithm\": \"", plan.algorithm,
                      "\", \"scratchpad\": ", plan.scratch.bytes(),
                      ", \"packed_weights\": ", plan.packed_weights, ", \"pieces\": {",
                      absl::StrJoin(plan.scratch.entries(), ", ", piece), "}, \"blocking\": {",
                      absl::StrJoin(plan.blocking, ", ", size), "}}");
}

}  // namespace

Status MemoryPlanJson(const std::string& node_def, const std::vector<PartialTensorShape>& inputs,
                      int threads, std::string* json) {
  MemoryPlan plan;
  TF_RETURN_IF_ERROR(PlanMemory(node_def, inputs, threads, &plan));
  *json = ToJson(plan);
  return absl::OkStatus();
}

void RegisterMemoryPlan(const char* op, MemoryPlanFn plan) { Rows()[op] = plan; }

}  // namespace bd
