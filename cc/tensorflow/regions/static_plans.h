// The prepared runs that a sequence keeps, by the shapes of its arguments.
#ifndef CC_TENSORFLOW_REGIONS_STATIC_PLANS_H_
#define CC_TENSORFLOW_REGIONS_STATIC_PLANS_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cc/tensorflow/regions/static_plan.h"

namespace bd {

// Safe to use from many threads. One call at a time has the memory of intermediate tensors,
// that of the largest run; others go the usual way meanwhile.
class PreparedRuns {
 public:
  // For one call: a started run, if there is one.
  class Lease {
   public:
    Lease() = default;
    ~Lease();
    explicit operator bool() const { return run_ != nullptr; }
    // The results, not computed yet; empty if the run does not know all of them.
    std::vector<Tensor> Expected() const;
    // As PreparedRun::Finish; without it, the run is abandoned.
    absl::Status Finish(tensorflow::OpKernelContext::Params* params, std::vector<Tensor>* results,
                        bool* done);

   private:
    friend class PreparedRuns;
    void Release();
    PreparedRuns* runs_ = nullptr;
    std::shared_ptr<const PreparedRun> run_;
  };

  // Starts the run on these arguments; *lease stays empty where there is none that is free.
  // Returns whether there is one.
  bool Lend(const tensorflow::OpKernelContext::Params& params, absl::Span<const Tensor> arguments,
            Lease* lease);

  // The same; sets *record if a run on these arguments should be recorded.
  void Take(const tensorflow::OpKernelContext::Params& params, absl::Span<const Tensor> arguments,
            Lease* lease, bool* record);

  void Add(std::shared_ptr<const PreparedRun> run, absl::Span<const Tensor> arguments);

 private:
  static constexpr size_t kCapacity = 4;
  static constexpr int kMostPatience = 63;

  static constexpr size_t kMostSeen = 16;
  using Described = std::vector<std::pair<tensorflow::DataType, TensorShape>>;

  // A run could not be what it was: the weights of all of them are old.
  void GiveUp();

  std::mutex mutex_;
  std::vector<std::shared_ptr<const PreparedRun>> runs_;  // most recently used first
  std::vector<Described> seen_;                           // arguments of other runs, in turn
  RunMemory memory_;
  bool busy_ = false;
  // Runs that had to be given up: weights that change all the time. The next recordings
  // wait for so many calls.
  int patience_ = 0, wait_ = 0;
};

}  // namespace bd

#endif  // CC_TENSORFLOW_REGIONS_STATIC_PLANS_H_
