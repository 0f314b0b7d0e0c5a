#include "cc/tensorflow/regions/static_plan.h"

#include <algorithm>
#include <atomic>

#include "cc/base/memory/huge_pages.h"
#include "cc/tensorflow/regions/arena_planner.h"
#include "cc/tensorflow/weights/weights_file.h"
#include "tsl/profiler/lib/traceme.h"

namespace bd {
namespace {

int64_t NextSerial() {
  static std::atomic<int64_t> serial{0};
  return ++serial;
}

// Whether the file that the tensor lies in, if any, is as it was.
absl::Status CheckFile(const Tensor& tensor) {
  const WeightsFile* const file = WeightsFile::Of(tensor);
  return file == nullptr ? absl::OkStatus() : file->Check();
}

}  // namespace

Recording::Recording(absl::Span<const Tensor> arguments, int num_tensors) {
  tensors_.reserve(num_tensors);
  for (const Tensor& t : arguments) AddTensor(t, -1);
}

void Recording::AddTensor(const Tensor& tensor, int producer) {
  const WeightsFile* const file = WeightsFile::Of(tensor);
  if (file != nullptr && std::find(files_.begin(), files_.end(), file) == files_.end()) {
    files_.push_back(file);
    of_files_.push_back(static_cast<int>(tensors_.size()));
  }
  tensors_.push_back(TensorInfo::Of(tensor, producer));
}

void Recording::Add(const Step& step, std::unique_ptr<PreparedLaunch> launch,
                    const std::vector<Tensor>& tensors) {
  const int producer = static_cast<int>(launches_.size());
  for (int i = 0; i < step.kernel->num_outputs(); ++i) {
    AddTensor(tensors[step.first_output + i], producer);
  }
  launches_.push_back(std::move(launch));
}

// Decides what lies in the arena, and where.
class StaticPlan::Maker {
 public:
  explicit Maker(StaticPlan* plan) : steps_(plan->steps_), plan_(*plan) {}

  // False if no step is prepared.
  bool Make() {
    DropMovingWeights();
    const auto prepared = [](const auto& launch) { return launch != nullptr; };
    if (std::none_of(plan_.launches_.begin(), plan_.launches_.end(), prepared)) return false;
    FindOpen();
    FindBlocks();
    MakeItems();
    PlaceAll();
    return true;
  }

 private:
  const PreparedLaunch* LaunchOf(int step) const {
    return step < 0 ? nullptr : plan_.launches_[step].get();
  }

  // Launches whose weights another launch makes have to look at them each time.
  void DropMovingWeights() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (plan_.launches_[s] == nullptr) continue;
      for (int input : plan_.launches_[s]->fixed_inputs()) {
        const int weights = steps_[s].inputs[input].tensor;
        if (LaunchOf(plan_.tensors_[weights].producer) == nullptr) continue;
        plan_.launches_[s].reset();
        break;
      }
    }
  }

  void FindOpen() {
    const int tensors = static_cast<int>(plan_.tensors_.size());
    std::vector<bool> open(tensors);
    last_reader_.resize(tensors);
    for (int t = 0; t < tensors; ++t) {
      last_reader_[t] = plan_.tensors_[t].producer;
      open[t] = LaunchOf(plan_.tensors_[t].producer) == nullptr;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const TensorUse& use : steps_[s].inputs) {
        last_reader_[use.tensor] = static_cast<int>(s);
        if (LaunchOf(s) == nullptr) open[use.tensor] = true;
      }
    }
    for (int result : plan_.results_) open[result] = true;
    for (int t = 0; t < tensors; ++t) {
      plan_.open_index_.push_back(open[t] ? static_cast<int>(plan_.open_.size()) : -1);
      if (open[t]) plan_.open_.push_back({t, {}, nullptr});
    }
  }

  bool InArena(int tensor) const { return plan_.open_index_[tensor] < 0; }

  // A block for each tensor in the arena; one for all that took each other's memory.
  void FindBlocks() {
    block_of_.assign(plan_.tensors_.size(), -1);
    for (size_t t = 0; t < plan_.tensors_.size(); ++t) {
      if (!InArena(t)) continue;
      const Recording::TensorInfo& info = plan_.tensors_[t];
      for (const TensorUse& use : steps_[info.producer].inputs) {
        if (use.last && InArena(use.tensor) && plan_.tensors_[use.tensor].data == info.data) {
          block_of_[t] = block_of_[use.tensor];
        }
      }
      if (block_of_[t] < 0) {
        block_of_[t] = static_cast<int>(blocks_.size());
        blocks_.push_back({info.producer, info.producer, info.bytes});
      }
      MemoryBlock& block = blocks_[block_of_[t]];
      block.end = std::max(block.end, last_reader_[t]);
    }
  }

  // Pointers get the number of their block first.
  void MakeItems() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      Item item;
      item.launch = LaunchOf(s);
      item.step = static_cast<int>(s);
      if (item.launch != nullptr) {
        const Step& step = steps_[s];
        item.first_pointer = static_cast<int>(pointers_.size());
        item.num_inputs = static_cast<int>(step.inputs.size());
        for (const TensorUse& use : step.inputs) AddPointer(use.tensor);
        item.num_outputs = step.kernel->num_outputs();
        for (int i = 0; i < item.num_outputs; ++i) {
          const int output = step.first_output + i;
          AddPointer(output);
          if (!InArena(output)) plan_.made_.push_back(output);
        }
        pointers_.push_back(AddScratch(s, item.launch->scratch_bytes()));
        for (int input : item.launch->fixed_inputs()) {
          const int weights = step.inputs[input].tensor;
          plan_.open_[plan_.open_index_[weights]].fixed = plan_.tensors_[weights].data;
        }
        for (const TensorUse& use : step.inputs) {
          if (use.last && !InArena(use.tensor)) plan_.drops_.push_back(use.tensor);
        }
      }
      item.made_end = static_cast<int>(plan_.made_.size());
      item.drops_end = static_cast<int>(plan_.drops_.size());
      plan_.items_.push_back(item);
    }
  }

  void AddPointer(int tensor) {
    if (!InArena(tensor)) {
      plan_.open_[plan_.open_index_[tensor]].pointers.push_back(static_cast<int>(pointers_.size()));
    }
    pointers_.push_back(block_of_[tensor]);
  }

  int AddScratch(int step, int64_t bytes) {
    if (bytes == 0) return -1;
    blocks_.push_back({step, step, bytes});
    return static_cast<int>(blocks_.size()) - 1;
  }

  void PlaceAll() {
    plan_.arena_bytes_ = PlaceBlocks(&blocks_);
    for (int block : pointers_) plan_.offsets_.push_back(block < 0 ? -1 : blocks_[block].offset);
  }

  const std::vector<Step>& steps_;
  StaticPlan& plan_;
  std::vector<int> last_reader_;  // of tensors; the producer where nobody reads
  std::vector<int> block_of_;     // of tensors
  std::vector<MemoryBlock> blocks_;
  std::vector<int> pointers_;  // blocks, or -1
};

StaticPlan::StaticPlan(const std::vector<Step>& steps) : serial_(NextSerial()), steps_(steps) {}

std::shared_ptr<const StaticPlan> StaticPlan::Make(const std::vector<Step>& steps,
                                                   const std::vector<int>& results,
                                                   size_t num_arguments, Recording recording) {
  const std::shared_ptr<StaticPlan> plan(new StaticPlan(steps));
  plan->results_ = results;
  plan->num_arguments_ = num_arguments;
  plan->tensors_ = std::move(recording.tensors_);
  plan->launches_ = std::move(recording.launches_);
  plan->of_files_ = std::move(recording.of_files_);
  if (!Maker(plan.get()).Make()) return nullptr;
  return plan;
}

bool StaticPlan::Claim(Arena* arena) const {
  if (arena->plan_ == serial_) return true;
  if (static_cast<int64_t>(arena->buffer_.size()) < arena_bytes_) {
    arena->buffer_ = AlignedBuffer();
    arena->buffer_ = AlignedBuffer(arena_bytes_);
    if (arena->buffer_.data() == nullptr) {
      arena->plan_ = 0;
      return false;
    }
  }
  arena->plan_ = serial_;
  char* const base = arena->buffer_.As<char>();
  arena->pointers_.clear();
  for (int64_t offset : offsets_) {
    arena->pointers_.push_back(offset < 0 ? nullptr : base + offset);
  }
  arena->bound_.assign(open_.size(), nullptr);
  arena->tensors_.resize(tensors_.size());
  return true;
}

bool StaticPlan::Bind(int tensor, Arena* arena) const {
  const int index = open_index_[tensor];
  void* const data = arena->tensors_[tensor].data();
  if (arena->bound_[index] == data) return true;
  const Open& open = open_[index];
  if (open.fixed != nullptr && data != open.fixed) return false;
  for (int pointer : open.pointers) arena->pointers_[pointer] = data;
  arena->bound_[index] = data;
  return true;
}

bool StaticPlan::Allocate(const OpKernelContext::Params& params, int tensor, Arena* arena) const {
  const Recording::TensorInfo& info = tensors_[tensor];
  Tensor made(params.device->GetAllocator({}), info.dtype, info.shape);
  if (!made.IsInitialized()) return false;
  PreferHugePages(made.data(), made.TotalBytes());
  arena->tensors_[tensor] = std::move(made);
  return Bind(tensor, arena);
}

absl::Status StaticPlan::Run(OpKernelContext::Params* params, absl::Span<const Tensor> arguments,
                             Arena* arena, std::vector<Tensor>* results, bool* done) const {
  *done = false;
  for (int t : of_files_) {
    if (t < static_cast<int>(num_arguments_)) TF_RETURN_IF_ERROR(CheckFile(arguments[t]));
  }
  if (!Claim(arena)) return absl::OkStatus();
  bool bound = true;
  for (size_t i = 0; i < num_arguments_; ++i) {
    arena->tensors_[i] = arguments[i];
    bound = bound && Bind(i, arena);
  }
  absl::Status status;
  if (bound) status = RunItems(params, arena, done);
  if (*done && status.ok()) {
    results->clear();
    for (int result : results_) results->push_back(arena->tensors_[result]);
  }
  for (const Open& open : open_) arena->tensors_[open.tensor] = Tensor();
  return status;
}

absl::Status StaticPlan::RunItems(OpKernelContext::Params* params, Arena* arena, bool* done) const {
  std::vector<Tensor>& tensors = arena->tensors_;
  int made = 0, dropped = 0;
  for (const Item& item : items_) {
    const Step& step = steps_[item.step];
    absl::Status status = CheckCancelled(*params);
    if (status.ok() && item.launch == nullptr) status = step.Run(params, &tensors, nullptr);
    if (!status.ok()) {
      *done = true;
      return status;
    }
    if (item.launch == nullptr) {
      for (int i = 0; i < step.kernel->num_outputs(); ++i) {
        const int t = step.first_output + i;
        if (std::find(of_files_.begin(), of_files_.end(), t) != of_files_.end()) {
          status = CheckFile(tensors[t]);
          *done = !status.ok();
          if (*done) return status;
        }
        if (open_[open_index_[t]].pointers.empty()) continue;
        if (!tensors_[t].Describes(tensors[t]) || !Bind(t, arena)) return absl::OkStatus();
      }
      continue;
    }
    for (; made < item.made_end; ++made) {
      if (!Allocate(*params, made_[made], arena)) return absl::OkStatus();
    }
    {
      const tsl::profiler::TraceMe profiled([&] { return ProfiledName(*step.kernel); });
      void* const* const pointers = arena->pointers_.data() + item.first_pointer;
      item.launch->Run(
          {pointers, pointers + item.num_inputs, pointers[item.num_inputs + item.num_outputs]});
    }
    for (; dropped < item.drops_end; ++dropped) tensors[drops_[dropped]] = Tensor();
  }
  *done = true;
  return absl::OkStatus();
}

}  // namespace bd
