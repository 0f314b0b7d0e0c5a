// A converted region: the ops of a function that run as one.
//
//   op_sequence.h    the body's kernels, in an order that its edges allow
//   static_plan.h    a run on arguments of known shapes: what each op resolved, where tensors lie
//   arena_planner.h  tensors that live at different times, laid over each other
//
// A region runs in one of two ways. The first run on arguments of some shapes goes op by op,
// each with a context of its own, and so does the second, which is recorded; from the third on
// the static plan made of the record runs. Shapes that never come back cost nothing.
//
// The op BlockdnnRegion (region_op.cc) is a region in a graph, and graphs are written with
// it by python/rewriter/regions.py:
//
//   inputs, Tin      the tensors that the body reads, weights among them; variables are read
//                    outside, so that a region is a pure function of tensors
//   outputs, Tout    what the rest of the graph reads of the body
//   f                the body, an ordinary function of the graph's library. Ops run that need
//                    one thread and no function library (no control flow, nothing asynchronous)
//   output_shapes    static shapes of the outputs, for those who build graphs
//   keeps_memory     whether a static plan may keep its arena between runs
//
// A function that calls regions is a region, too: OpSequence takes their bodies in line. That is
// how eager calls run (c_api/eager_fast_path.cc).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cc/base/fork_safe_mutex.h"
#include "cc/tensorflow/regions/op_sequence.h"
#include "cc/tensorflow/regions/static_plan.h"

namespace bd {

// How many arenas are worth keeping: more runs at once than threads gain nothing.
int MostArenas(const tensorflow::DeviceBase* device);

// Safe to use from many threads at once: concurrent runs share the plan, and each has an arena
// of its own.
class Region {
 public:
  // At most `most_arenas` are kept between runs; with 0 nothing is kept and nothing is planned.
  Region(OpSequence sequence, int most_arenas);

  // Arguments -> results. `params` says where: device and resources are needed, of the rest
  // what the ops ask for. An op's error carries the name of its node.
  absl::Status Run(tensorflow::OpKernelContext::Params params, absl::Span<const Tensor> arguments,
                   std::vector<Tensor>* results);

 private:
  // Shapes that runs have met, each with a plan, which keeps the packed weights that its ops run
  // on: those that ops would keep for these shapes without it.
  static constexpr size_t kMostKnown = 16;
  // Runs after which a plan that none of them wanted goes, with its packed weights.
  static constexpr int64_t kSettled = 64;
  static constexpr int kMostPatience = 63;

  struct Known {
    std::vector<std::pair<tensorflow::DataType, TensorShape>> arguments;
    std::shared_ptr<const StaticPlan> plan;  // null: not made yet
    int64_t last_run = 0;
    bool Describes(absl::Span<const Tensor> tensors) const;
  };

  // The plan for these arguments, or null; then *record says whether to record the run.
  std::shared_ptr<const StaticPlan> Find(absl::Span<const Tensor> arguments, bool* record);
  void Add(std::shared_ptr<const StaticPlan> plan, absl::Span<const Tensor> arguments);
  // A plan did not hold any more: the weights of all of them are old.
  void GiveUp();

  std::unique_ptr<Arena> TakeArena();
  void GiveBack(std::unique_ptr<Arena> arena);

  const OpSequence sequence_;
  const size_t most_arenas_;
  ForkSafeMutex mutex_;
  std::vector<Known> known_;  // most recently used first
  int64_t runs_ = 0;
  std::vector<std::unique_ptr<Arena>> arenas_;
  // After plans were given up, the next recordings wait for so many calls, longer each time,
  // since weights may change all the time; but not if the last time is long ago.
  int patience_ = 0, wait_ = 0;
  int64_t given_up_ = 0;  // at which run
};

}  // namespace bd
