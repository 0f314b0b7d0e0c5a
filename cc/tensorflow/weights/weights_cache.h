// The packed weights of one kernel: packed at first use, kept while they are used, shared.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/weights/pack_registry.h"

namespace bd {

// The weights of one execution in the order its plan reads them.
struct WeightsLease {
  const void* data = nullptr;                 // null: nothing is packed
  const void* plain = nullptr;                // where PackRequest::plain_bytes > 0
  std::shared_ptr<const PackedWeights> kept;  // where they are, or
  Tensor packed_now;                          // packed for this execution only

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  int64_t bytes_packed() const { return static_cast<int64_t>(packed_now.TotalBytes()); }
  // Whether it is true of later executions on weights in the same memory.
  bool lasts() const { return bytes_packed() == 0 && (kept == nullptr || kept->id.contents == 0); }
};

// Whether nobody writes into the tensor's memory while somebody holds a reference to it. TensorFlow
// does not, into memory of its own; but it also takes that of others as a tensor: an eager op reads
// a NumPy array where it lies, and there its owner may change it at any time.
bool StaysWhileHeld(const Tensor& tensor);

// Where weights lie, and some of them: equal fingerprints of what an optimizer may have assigned in
// between mean that it has not, but for changes that miss every sample.
struct WeightsFingerprint {
  const void* data = nullptr;
  int64_t elements = 0;
  uint64_t samples = 0;  // a hash

  static WeightsFingerprint At(const Tensor& weights);
  bool operator==(const WeightsFingerprint& other) const {
    return data == other.data && elements == other.elements && samples == other.samples;
  }
};

// How often weights change, so when a packed form of them is kept.
enum class WeightsChange {
  kNever,   // at first use; nobody looks at them again
  kSeldom,  // at first use, unless they keep changing
  kOften,   // once they have come twice in a row
};

// Safe to use from many threads; no lock is held while weights are packed.
//
// Shapes that come in turn may want packed forms of their own. What no execution has wanted for
// kSettled ones goes, and all goes with Release(), which is called when a static plan holds what
// it needs. So a network's packed weights settle at one form a weight and shape that is in use.
//
// Weights that an optimizer assigns in every step are packed for one execution and never held: a
// reference would make TensorFlow copy them for each assignment. Whether they have changed, in the
// same buffer too, a look at a few of them tells; only once they have not are they held, so that
// what was packed stays true. In memory that others may write while it is held, a hash of all
// weights that the op reads belongs to what was packed: it takes a small part of the time of
// packing.
class WeightsCache {
 public:
  static constexpr int64_t kSettled = 64;
  static constexpr int kChanging = 2;  // other weights so many times in a row: they change

  // `offset`: of the first weight in the tensor; `elements`: of the weights, -1: all from it on.
  WeightsCache(int64_t offset, WeightsChange change, int64_t elements = -1)
      : offset_(offset), elements_(elements), change_(change) {}

  // Makes *lease from the op's input `weights`, packing it if need be.
  Status Take(OpKernelContext* ctx, int weights, const PackRequest& request, WeightsLease* lease) {
    return Take(ctx, ctx->input(weights), request, lease);
  }
  Status Take(OpKernelContext* ctx, const Tensor& weights, const PackRequest& request,
              WeightsLease* lease);

  // Whether weights have changed so often that the next ones will be packed for one execution.
  bool changing();

  void Release();

 private:
  struct Held {
    std::shared_ptr<const PackedWeights> pack;
    int64_t last_use;
  };

  // Sets *worth_keeping where nothing fits.
  std::shared_ptr<const PackedWeights> Find(const PackId& id, const Tensor& weights,
                                            const PackRequest& request, bool* worth_keeping);

  // Whether the weights are those of the look before; counts changes. Needs the lock.
  bool Look(const Tensor& weights, const PackRequest& request);

  const int64_t offset_, elements_;
  const WeightsChange change_;
  ForkSafeMutex mutex_;
  std::vector<Held> held_;
  int64_t uses_ = 0;
  int changes_ = 0;                         // in a row
  std::array<WeightsFingerprint, 2> last_;  // at the weights that the last execution looked at
};

}  // namespace bd
