#include "cc/tensorflow/op_base/memory_plan.h"

#include <map>

#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace bd {
namespace {

std::map<std::string, MemoryPlanFn>& Rows() {
  static auto* rows = new std::map<std::string, MemoryPlanFn>;
  return *rows;
}

Status PlanMemory(const std::string& node_def, const std::vector<PartialTensorShape>& inputs,
                  int threads, MemoryPlan* plan) {
  tensorflow::NodeDef node;
  if (!node.ParseFromString(node_def)) return Invalid("this is not a serialised NodeDef");
  const auto row = Rows().find(node.op());
  return row == Rows().end() ? absl::OkStatus()
                             : row->second(NodeAttrs(node), inputs, threads, plan);
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

MemoryPlanRow::MemoryPlanRow(const char* op, MemoryPlanFn plan) { Rows()[op] = plan; }

}  // namespace bd
