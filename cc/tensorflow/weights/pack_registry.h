// All packed weights of the process that somebody holds, so that kernels share them.
#ifndef CC_TENSORFLOW_WEIGHTS_PACK_REGISTRY_H_
#define CC_TENSORFLOW_WEIGHTS_PACK_REGISTRY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cc/base/function_ref.h"
#include "cc/base/memory/aligned_buffer.h"
#include "cc/layout/pack_key.h"
#include "tensorflow/core/framework/tensor.h"

namespace bd {

// Packs `plain` into 64-byte aligned memory.
using WeightsPacker = FunctionRef<void(const void* plain, void* packed)>;

// What a plan wants of weights. Equal keys of equally shaped weights are equal bytes.
struct PackRequest {
  PackKey key;
  std::array<int64_t, 5> shape = {};  // for example kh, kw, ic / groups, oc, groups
  int64_t bytes = 0;                  // packed; 0: nothing is
  int64_t plain_bytes = 0;            // where kernels read the weights as they are, all of them
  WeightsPacker pack;
};

// The packed form of weights that live in `source`. Holding the reference keeps TensorFlow from
// writing new values into that buffer or giving its address to another tensor: assigning the
// variable yields a new data().
struct PackedWeights {
  tensorflow::Tensor source;
  int64_t offset = 0;                 // of the first element in source
  std::array<int64_t, 5> shape = {};  // as PackRequest::shape
  PackKey key;
  AlignedBuffer memory;

  const float* data() const { return memory.As<float>(); }

  bool Holds(const tensorflow::Tensor& weights, int64_t first, const PackRequest& wanted) const {
    return source.data() == weights.data() && offset == first && shape == wanted.shape &&
           key == wanted.key && static_cast<int64_t>(memory.size()) == wanted.bytes;
  }
};

// Safe to use from many threads. No lock is held while weights are packed: others go on, those
// who want the same wait for it, and a child process that was forked meanwhile, in which nobody
// goes on packing, packs for itself.
class PackRegistry {
 public:
  static PackRegistry& Get();

  // The packed form of what lies behind `offset` elements, packed now if nobody holds it.
  absl::Status FindOrPack(const tensorflow::Tensor& weights, int64_t offset,
                          const PackRequest& request, std::shared_ptr<const PackedWeights>* found);

  // How many packed forms are held, for tests.
  int64_t size();

 private:
  class Job;

  std::mutex mutex_;
  std::vector<std::weak_ptr<const PackedWeights>> packs_;
  std::vector<std::shared_ptr<Job>> jobs_;  // under way
};

}  // namespace bd

#endif  // CC_TENSORFLOW_WEIGHTS_PACK_REGISTRY_H_
