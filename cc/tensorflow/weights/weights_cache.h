// Packed weights: packed at first use, kept while somebody uses them, shared.
#ifndef CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_
#define CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cc/base/aligned_buffer.h"
#include "cc/base/function_ref.h"
#include "cc/layout/pack_key.h"
#include "cc/tensorflow/op_base/op_utils.h"

namespace bd {

// The packed form of weights that live in `source`. Holding the reference
// keeps TensorFlow from writing new values into that buffer or giving its
// address to another tensor: assigning the variable yields a new data().
struct PackedWeights {
  Tensor source;
  int64_t offset = 0;                 // of the first element in source
  std::array<int64_t, 5> shape = {};  // as PackRequest::shape
  PackKey key;
  AlignedBuffer memory;

  const float* data() const { return memory.As<float>(); }

  bool Holds(const Tensor& weights, const PackKey& wanted) const {
    return source.data() == weights.data() && key == wanted;
  }
};

// What a plan wants of weights. Equal keys of equally shaped weights are equal bytes.
struct PackRequest {
  PackKey key;
  std::array<int64_t, 5> shape = {};  // for example kh, kw, ic / groups, oc, groups
  int64_t bytes = 0;                  // packed; 0: nothing is
  int64_t plain_bytes = 0;            // where kernels read the weights as they are, all of them
  // Packs `plain` into 64-byte aligned memory.
  FunctionRef<void(const void* plain, void* packed)> pack;
};

// The weights of one execution in the order its plan reads them.
struct WeightsLease {
  const float* data = nullptr;                // null: nothing is packed
  const float* plain = nullptr;               // where PackRequest::plain_bytes > 0
  std::shared_ptr<const PackedWeights> kept;  // where they are, or
  Tensor packed_now;                          // packed for this execution only

  int64_t bytes_packed() const { return static_cast<int64_t>(packed_now.TotalBytes()); }
};

// What one kernel remembers; safe to use from many threads.
class WeightsCache {
 public:
  WeightsCache(int64_t offset, bool constant) : offset_(offset), constant_(constant) {}

  // Makes *lease from the op's input `weights`, packing it if need be.
  Status Take(OpKernelContext* ctx, int weights, const PackRequest& request, WeightsLease* lease);

 private:
  // Sets *pack to the packed form of `weights`, kept for later calls,
  // or to nullptr when they are better packed into scratch: weights that are not
  // constant are kept only once the same buffer has come twice in a row.
  Status Get(const PackRequest& request, const Tensor& weights,
             std::shared_ptr<const PackedWeights>* pack);

  // Winograd and direct for changing shapes, with room to spare.
  static constexpr size_t kCapacity = 4;

  const int64_t offset_;
  const bool constant_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const PackedWeights>> packs_;  // most recent first
  Tensor last_;  // the weights of the last call that kept nothing
};

}  // namespace bd

#endif  // CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_
