// An op names each of its attributes once, in a Visit of its struct of attributes:
//
//   void Visit(AttrVisitor& v) {
//     v.Choice("kind", &kind, {{"max", PoolKind::kMax}, {"avg", PoolKind::kAvg}});
//     v("channels: int >= 1", &channels);
//   }
//
// From it come the attributes of the op's definition and, where a node is at hand, their values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cc/base/data_type.h"
#include "cc/base/function_ref.h"
#include "cc/layout/layout.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/platform/errors.h"

namespace bd {

using absl::Status;

// An InvalidArgument of the joined parts: what is wrong, then the remedy.
template <typename... Parts>
Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// A core system's complaint: empty, or one line.
inline Status FromCore(const std::string& error) {
  return error.empty() ? absl::OkStatus() : Invalid(error);
}

class AttrVisitor {
 public:
  // The value of a node's attribute; null if it has none of that name.
  using Lookup = FunctionRef<const tensorflow::AttrValue*(absl::string_view name)>;

  explicit AttrVisitor(tensorflow::OpDefBuilder* definition) : definition_(definition) {}
  explicit AttrVisitor(const Lookup& node) : node_(&node) {}

  // `spec` as in OpDefBuilder::Attr. A least value is checked on reading, too: TensorFlow does
  // not look at it in an eager call.
  void operator()(absl::string_view spec, int64_t* value);
  void operator()(absl::string_view spec, int* value);
  void operator()(absl::string_view spec, bool* value);
  void operator()(absl::string_view spec, float* value);
  void operator()(absl::string_view spec, std::string* value);
  void operator()(absl::string_view spec, std::vector<int64_t>* value);
  void operator()(absl::string_view spec, std::vector<float>* value);
  void operator()(absl::string_view spec, tensorflow::DataType* value);
  void operator()(absl::string_view spec, DataType* value);
  void operator()(absl::string_view spec, std::vector<DataType>* value);

  // One of some values, by name; without a default if `usual` is null.
  template <typename T>
  struct Named {
    const char* name;
    T value;
  };
  template <typename T>
  void Choice(const char* name, T* value, std::initializer_list<Named<T>> choices,
              const char* usual = nullptr) {
    std::vector<const char*> names;
    for (const Named<T>& choice : choices) names.push_back(choice.name);
    const int chosen = Choose(name, names, usual);
    if (chosen >= 0) *value = (choices.begin() + chosen)->value;
  }
  void Choice(const char* name, Layout* value, std::initializer_list<Layout> choices,
              const char* usual = nullptr);

  const Status& status() const { return status_; }

 private:
  // The node's value of what `spec` names; null where an op is being defined or something is wrong.
  const tensorflow::AttrValue* Find(absl::string_view spec);
  // The index of the node's choice, or -1.
  int Choose(const char* name, const std::vector<const char*>& names, const char* usual);

  tensorflow::OpDefBuilder* const definition_ = nullptr;
  const Lookup* const node_ = nullptr;
  Status status_;
};

// Reads the attributes of a node and checks them.
template <typename Op>
Status ReadAttrs(const AttrVisitor::Lookup& node, Op* op) {
  AttrVisitor visitor(node);
  op->Visit(visitor);
  return visitor.status().ok() ? op->Check() : visitor.status();
}

}  // namespace bd
