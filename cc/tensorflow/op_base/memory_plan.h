// What memory an op will take, asked without running it: bd.ops.memory_plan. Each op plans with
// the code that its kernel plans with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/memory/scratch.h"
#include "cc/tensorflow/attrs/attr_visitor.h"
#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct MemoryPlan {
  std::string algorithm;  // as in the verbose log
  const char* note = "";  // what the log adds to it
  ScratchBook scratch;
  int64_t packed_weights = 0;  // bytes of the packed copy; 0: read as they are
  // The sizes that planning chose and that the scratch depends on, by name.
  std::vector<std::pair<const char*, int64_t>> blocking;
};

// Plans for full shapes of all inputs of the node.
using MemoryPlanFn = Status (*)(const AttrVisitor::Lookup& node,
                                const std::vector<PartialTensorShape>& inputs, int threads,
                                MemoryPlan* plan);

// `op` is a literal.
void RegisterMemoryPlan(const char* op, MemoryPlanFn plan);

// The plan of a serialised NodeDef with all its attributes, as JSON.
Status MemoryPlanJson(const std::string& node_def, const std::vector<PartialTensorShape>& inputs,
                      int threads, std::string* json);

}  // namespace bd
