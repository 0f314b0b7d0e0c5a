// The packed weights of one kernel: packed at first use, kept while they are used, shared.
#ifndef CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_
#define CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/weights/pack_registry.h"

namespace bd {

// The weights of one execution in the order its plan reads them.
struct WeightsLease {
  const float* data = nullptr;                // null: nothing is packed
  const float* plain = nullptr;               // where PackRequest::plain_bytes > 0
  std::shared_ptr<const PackedWeights> kept;  // where they are, or
  Tensor packed_now;                          // packed for this execution only

  int64_t bytes_packed() const { return static_cast<int64_t>(packed_now.TotalBytes()); }
};

// Where weights lie, and some of them: equal glances at what an optimizer may have assigned in
// between mean that it has not, but for changes that miss every sample.
struct WeightsGlance {
  const void* data = nullptr;
  int64_t elements = 0;
  uint64_t samples = 0;  // a hash

  static WeightsGlance At(const Tensor& weights);
  bool operator==(const WeightsGlance& other) const {
    return data == other.data && elements == other.elements && samples == other.samples;
  }
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
// what was packed stays true.
class WeightsCache {
 public:
  static constexpr int64_t kSettled = 64;
  static constexpr int kChanging = 2;  // other weights so many times in a row: they change

  // `offset`: of the first weight in the tensor. `constant`: the weights never change; of others
  // a packed form is kept only once they have come twice in a row.
  WeightsCache(int64_t offset, bool constant) : offset_(offset), constant_(constant) {}

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
  std::shared_ptr<const PackedWeights> Find(const Tensor& weights, const PackRequest& request,
                                            bool* worth_keeping);

  // Whether the weights are those of the look before; counts changes. Needs the lock.
  bool Look(const Tensor& weights);

  const int64_t offset_;
  const bool constant_;
  std::mutex mutex_;
  std::vector<Held> held_;
  int64_t uses_ = 0;
  int changes_ = 0;     // in a row
  WeightsGlance last_;  // at the weights of the last execution that kept nothing
};

}  // namespace bd

#endif  // CC_TENSORFLOW_WEIGHTS_WEIGHTS_CACHE_H_
