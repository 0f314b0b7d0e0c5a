// Whether variables still have the values that somebody has read of them.
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "cc/base/fork_safe_mutex.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/refcount.h"

namespace bd {

// Holds the values. TensorFlow writes no others into memory that somebody holds, so a variable
// whose tensor lies where its value does has not changed, and this costs one look at each.
//
// Others are compared by their contents: those that lie elsewhere, because they were assigned;
// those that sparse updates write where they are, of which TensorFlow reads copies; and those in
// memory of others (StaysWhileHeld), of which the value is copied here.
//
// Safe to use from many threads.
class WeightsWatch {
 public:
  using Variable = tensorflow::core::RefCountPtr<tensorflow::Var>;

  // A variable and what was read of it.
  void Add(Variable variable, const tensorflow::Tensor& value);

  bool Changed();

 private:
  // Between two calls of a network all this leaves the caches, so that a look reads little.
  struct Look {
    tensorflow::Var* variable = nullptr;
    std::atomic<const void*> buffer{nullptr};  // the value's
  };
  struct Watched {
    Variable variable;
    tensorflow::Tensor value;  // needs mutex_
  };

  bool HasOtherContents(size_t index);

  ForkSafeMutex mutex_;
  std::vector<Watched> watched_;
  std::deque<Look> looks_;
};

// What the op BlockdnnFollow calls with the address of its variable: returns an error or null.
using FollowFunction = const char* (*)(const void* variable);
void SetFollowFunction(FollowFunction function);
const char* Follow(const void* variable);  // null where nothing is set

}  // namespace bd
