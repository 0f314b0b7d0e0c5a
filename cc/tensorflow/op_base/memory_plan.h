// What memory an op will take, asked without running it: bd.ops.scratchpad_size.
//
// An op that books scratch or packs weights adds one row beside its kernel,
//
//   const MemoryPlanRow row("BlockdnnConv", PlanConvMemory<Conv>);
//
// whose function plans with the code that the kernel plans with. Ops without a
// row take neither.
#ifndef CC_TENSORFLOW_OP_BASE_MEMORY_PLAN_H_
#define CC_TENSORFLOW_OP_BASE_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/memory/scratch.h"
#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace bd {

struct MemoryPlan {
  std::string algorithm;  // as in the verbose log
  ScratchBook scratch;
  int64_t packed_weights = 0;  // bytes of the packed copy; 0: read as they are
  // The sizes that planning chose and that the scratch depends on, by name.
  std::vector<std::pair<const char*, int64_t>> blocking;
};

// Attributes of a node, for the Read() of cc/tensorflow/attrs/attrs.h.
class NodeAttrs {
 public:
  explicit NodeAttrs(const tensorflow::NodeDef& node) : attrs_(node) {}

  template <typename T>
  Status GetAttr(const char* name, T* value) const {
    return tensorflow::GetNodeAttr(attrs_, name, value);
  }

 private:
  const tensorflow::AttrSlice attrs_;
};

// Plans for full shapes of all inputs of the node.
using MemoryPlanFn = Status (*)(const NodeAttrs& attrs,
                                const std::vector<PartialTensorShape>& inputs, int threads,
                                MemoryPlan* plan);

// To be defined at namespace scope only.
class MemoryPlanRow {
 public:
  MemoryPlanRow(const char* op, MemoryPlanFn plan);
};

// The plan of a serialised NodeDef with all its attributes, as JSON.
Status MemoryPlanJson(const std::string& node_def, const std::vector<PartialTensorShape>& inputs,
                      int threads, std::string* json);

}  // namespace bd

#endif  // CC_TENSORFLOW_OP_BASE_MEMORY_PLAN_H_
