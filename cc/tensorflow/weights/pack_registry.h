// All packed weights of the process that somebody holds, so that kernels share them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cc/base/fork_safe_mutex.h"
#include "cc/base/function_ref.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/layout/pack_key.h"
#include "tensorflow/core/framework/tensor.h"

namespace bd {

const void* ElementAt(const tensorflow::Tensor& tensor, int64_t element);

// Packs `plain` into 64-byte aligned memory.
using WeightsPacker = FunctionRef<void(const void* plain, void* packed)>;

// What a plan wants of weights. Equal keys of equally shaped weights are equal bytes.
struct PackRequest {
  PackKey key;
  std::array<int64_t, 5> shape = {};  // for example kh, kw, ic / groups, oc, groups
  int64_t bytes = 0;                  // packed; 0: nothing is
  int64_t plain_bytes = 0;            // where kernels read the weights as they are, all of them
  WeightsPacker pack;
  const tensorflow::Tensor* more = nullptr;  // a second matrix that `pack` reads, if any
  // The power of two by which `pack` multiplies, where sources choose it. No result depends on it.
  std::function<int()> exponent = nullptr;
};

// Everything that distinguishes packed weights.
struct PackId {
  PackId(const tensorflow::Tensor& weights, int64_t offset, uint64_t contents,
         const PackRequest& request);
  bool operator==(const PackId& other) const;

  const void* source;
  const void* more;   // PackRequest::more's
  int64_t offset;     // of the first element in the source
  uint64_t contents;  // a hash of values that may change where they are; 0: they do not
  std::array<int64_t, 5> shape;
  PackKey key;
  int64_t bytes;
};

// Weights in packed form. Holding the references keeps TensorFlow from writing new values into
// these buffers or giving their addresses to other tensors: assigning the variable yields a new
// data().
struct PackedWeights {
  PackId id;
  tensorflow::Tensor source, more;
  std::shared_ptr<const void> memory;
};

// Safe to use from many threads. No lock is held while weights are packed: others go on, those
// who want the same wait for it, and a child process that was forked meanwhile, in which nobody
// goes on packing, packs for itself.
class PackRegistry {
 public:
  static PackRegistry& Get();

  // What `id` names, packed now, or mapped if another process has packed it, if nobody holds it.
  // `bytes`: of the plain weights.
  absl::Status FindOrPack(const PackId& id, const tensorflow::Tensor& weights, int64_t bytes,
                          const PackRequest& request, ThreadPool& pool,
                          std::shared_ptr<const PackedWeights>* result);

  // How many packed forms are held, for tests.
  int64_t size();

 private:
  class Job;

  ForkSafeMutex mutex_;
  std::vector<std::weak_ptr<const PackedWeights>> packs_;
  std::vector<std::shared_ptr<Job>> jobs_;  // under way
};

// How often weights have been packed in this process: for tests that weights are packed once.
void CountPack();
int64_t PackCount();

}  // namespace bd
