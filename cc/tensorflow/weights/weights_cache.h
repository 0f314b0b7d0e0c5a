// Packed weights: packed at first use, kept while somebody uses them, shared.
#ifndef CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_
#define CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cc/base/aligned_buffer.h"
#include "cc/core/conv/conv.h"
#include "cc/tensorflow/op_base/op_utils.h"

namespace bd {

// The packed form of weights that live in `source`. Holding the reference
// keeps TensorFlow from writing new values into that buffer or giving its
// address to another tensor: assigning the variable yields a new data().
struct PackedWeights {
  Tensor source;
  int64_t offset = 0;                 // of the first element in source
  std::array<int64_t, 5> shape = {};  // kh, kw, ic / groups, oc, groups
  ConvPacking packing;
  AlignedBuffer memory;

  const float* data() const { return memory.As<float>(); }

  bool Holds(const Tensor& weights, const ConvPacking& wanted) const {
    return source.data() == weights.data() && packing == wanted;
  }
};

// The weights of one execution in the order its plan reads them; for ConvBuffers.
struct WeightsLease {
  const float* data = nullptr;                // null: nothing is packed
  const float* plain = nullptr;               // where ConvPacking::as_is()
  std::shared_ptr<const PackedWeights> kept;  // where they are, or
  Tensor packed_now;                          // packed for this execution only

  int64_t bytes_packed() const { return static_cast<int64_t>(packed_now.TotalBytes()); }
};

// What one kernel remembers; safe to use from many threads.
class WeightsCache {
 public:
  WeightsCache(int64_t offset, bool constant) : offset_(offset), constant_(constant) {}

  // Makes *lease from the op's input `weights`, packing it if need be; `src` is what they
  // will meet.
  Status Take(OpKernelContext* ctx, int weights, const float* src, const ConvPlan& plan,
              ThreadPool& pool, WeightsLease* lease);

 private:
  // Sets *pack to the packed form of `weights` for `plan`, kept for later calls,
  // or to nullptr when they are better packed into scratch: weights that are not
  // constant are kept only once the same buffer has come twice in a row.
  Status Get(const ConvPlan& plan, const Tensor& weights, const float* src, ThreadPool& pool,
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
