#include "cc/tensorflow/regions/static_plan.h"

#include <algorithm>
#include <atomic>

#include "cc/base/huge_pages.h"
#include "cc/tensorflow/regions/arena_planner.h"
#include "tsl/profiler/lib/traceme.h"

namespace bd {
namespace {

int64_t NextSerial() {
  static std::atomic<int64_t> serial{0};
  return ++serial;
}

}  // namespace

Recording::Recording(absl::Span<const Tensor> arguments, int num_tensors) {
  tensors_.reserve(num_tensors);
  for (const Tensor& t : arguments) tensors_.push_back(TensorInfo::Of(t, -1));
}

void Recording::Add(const SequenceStep& step, std::unique_ptr<PreparedLaunch> launch,
                    const std::vector<Tensor>& tensors) {
  const int producer = static_cast<int>(launches_.size());
  for (int i = 0; i < step.kernel->num_outputs(); ++i) {
    tensors_.push_back(TensorInfo::Of(tensors[step.first_output + i], producer));
  }
  launches_.push_back(std::move(launch));
}

// Decides what lies in the buffer, and where.
class PreparedRun::Maker {
 public:
  explicit Maker(PreparedRun* run) : steps_(run->steps_), run_(*run) {}

  // False if no step is prepared.
  bool Make() {
    DropMovingWeights();
    const auto prepared = [](const auto& launch) { return launch != nullptr; };
    if (std::none_of(run_.launches_.begin(), run_.launches_.end(), prepared)) return false;
    FindOpen();
    FindBlocks();
    MakeItems();
    FindEarly();
    PlaceAll();
    return true;
  }

 private:
  const PreparedLaunch* LaunchOf(int step) const {
    return step < 0 ? nullptr : run_.launches_[step].get();
  }

  // Launches whose weights another launch makes have to look at them each time.
  void DropMovingWeights() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (run_.launches_[s] == nullptr) continue;
      for (int input : run_.launches_[s]->fixed_inputs()) {
        const int weights = steps_[s].inputs[input].tensor;
        if (LaunchOf(run_.tensors_[weights].producer) == nullptr) continue;
        run_.launches_[s].reset();
        break;
      }
    }
  }

  void FindOpen() {
    const int tensors = static_cast<int>(run_.tensors_.size());
    std::vector<bool> open(tensors);
    last_reader_.resize(tensors);
    for (int t = 0; t < tensors; ++t) {
      last_reader_[t] = run_.tensors_[t].producer;
      open[t] = LaunchOf(run_.tensors_[t].producer) == nullptr;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const TensorUse& use : steps_[s].inputs) {
        last_reader_[use.tensor] = static_cast<int>(s);
        if (LaunchOf(s) == nullptr) open[use.tensor] = true;
      }
    }
    for (int result : run_.results_) open[result] = true;
    for (int t = 0; t < tensors; ++t) {
      run_.open_index_.push_back(open[t] ? static_cast<int>(run_.open_.size()) : -1);
      if (open[t]) run_.open_.push_back({t, {}, nullptr});
    }
  }

  bool InBuffer(int tensor) const { return run_.open_index_[tensor] < 0; }

  // A block for each tensor in the buffer; one for all that took each other's memory.
  void FindBlocks() {
    block_of_.assign(run_.tensors_.size(), -1);
    for (size_t t = 0; t < run_.tensors_.size(); ++t) {
      if (!InBuffer(t)) continue;
      const Recording::TensorInfo& info = run_.tensors_[t];
      for (const TensorUse& use : steps_[info.producer].inputs) {
        if (use.last && InBuffer(use.tensor) && run_.tensors_[use.tensor].data == info.data) {
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
        const SequenceStep& step = steps_[s];
        item.first_pointer = static_cast<int>(pointers_.size());
        item.num_inputs = static_cast<int>(step.inputs.size());
        for (const TensorUse& use : step.inputs) AddPointer(use.tensor);
        AddPointer(step.first_output);
        if (!InBuffer(step.first_output)) item.open_dst = step.first_output;
        pointers_.push_back(AddScratch(s, item.launch->scratch_bytes()));
        for (int input : item.launch->fixed_inputs()) {
          const int weights = step.inputs[input].tensor;
          run_.open_[run_.open_index_[weights]].fixed = run_.tensors_[weights].data;
        }
        for (const TensorUse& use : step.inputs) {
          if (use.last && !InBuffer(use.tensor)) run_.drops_.push_back(use.tensor);
        }
      }
      item.drops_end = static_cast<int>(run_.drops_.size());
      run_.items_.push_back(item);
    }
  }

  void AddPointer(int tensor) {
    if (!InBuffer(tensor)) {
      run_.open_[run_.open_index_[tensor]].pointers.push_back(static_cast<int>(pointers_.size()));
    }
    pointers_.push_back(block_of_[tensor]);
  }

  int AddScratch(int step, int64_t bytes) {
    if (bytes == 0) return -1;
    blocks_.push_back({step, step, bytes});
    return static_cast<int>(blocks_.size()) - 1;
  }

  void FindEarly() {
    for (int result : run_.results_) {
      const bool known = std::count(run_.early_.begin(), run_.early_.end(), result) > 0;
      if (!known && LaunchOf(run_.tensors_[result].producer) != nullptr) {
        run_.early_.push_back(result);
      }
    }
  }

  void PlaceAll() {
    run_.buffer_bytes_ = PlaceBlocks(&blocks_);
    for (int block : pointers_) run_.offsets_.push_back(block < 0 ? -1 : blocks_[block].offset);
  }

  const std::vector<SequenceStep>& steps_;
  PreparedRun& run_;
  std::vector<int> last_reader_;  // of tensors; the producer where nobody reads
  std::vector<int> block_of_;     // of tensors
  std::vector<MemoryBlock> blocks_;
  std::vector<int> pointers_;  // blocks, or -1
};

PreparedRun::PreparedRun(const std::vector<SequenceStep>& steps)
    : serial_(NextSerial()), steps_(steps) {}

std::shared_ptr<const PreparedRun> PreparedRun::Make(const std::vector<SequenceStep>& steps,
                                                     const std::vector<int>& results,
                                                     size_t num_arguments, Recording recording) {
  const std::shared_ptr<PreparedRun> run(new PreparedRun(steps));
  run->results_ = results;
  run->num_arguments_ = num_arguments;
  run->tensors_ = std::move(recording.tensors_);
  run->launches_ = std::move(recording.launches_);
  if (!Maker(run.get()).Make()) return nullptr;
  return run;
}

bool PreparedRun::Takes(absl::Span<const Tensor> arguments) const {
  for (size_t i = 0; i < num_arguments_; ++i) {
    if (!tensors_[i].Describes(arguments[i])) return false;
  }
  return true;
}

bool PreparedRun::Claim(RunMemory* memory) const {
  if (memory->run_ == serial_) return true;
  if (static_cast<int64_t>(memory->buffer_.size()) < buffer_bytes_) {
    memory->buffer_ = AlignedBuffer();
    memory->buffer_ = AlignedBuffer(buffer_bytes_);
    if (memory->buffer_.data() == nullptr) {
      memory->run_ = 0;
      return false;
    }
  }
  memory->run_ = serial_;
  char* const base = memory->buffer_.As<char>();
  memory->pointers_.clear();
  for (int64_t offset : offsets_) {
    memory->pointers_.push_back(offset < 0 ? nullptr : reinterpret_cast<float*>(base + offset));
  }
  memory->bound_.assign(open_.size(), nullptr);
  memory->tensors_.resize(tensors_.size());
  return true;
}

bool PreparedRun::Bind(int tensor, RunMemory* memory) const {
  const int index = open_index_[tensor];
  void* const data = memory->tensors_[tensor].data();
  if (memory->bound_[index] == data) return true;
  const Open& open = open_[index];
  if (open.fixed != nullptr && data != open.fixed) return false;
  for (int pointer : open.pointers) memory->pointers_[pointer] = static_cast<float*>(data);
  memory->bound_[index] = data;
  return true;
}

bool PreparedRun::Allocate(const OpKernelContext::Params& params, int tensor,
                           RunMemory* memory) const {
  const Recording::TensorInfo& info = tensors_[tensor];
  Tensor made(params.device->GetAllocator({}), info.dtype, info.shape);
  if (!made.IsInitialized()) return false;
  PreferHugePages(made.data(), made.TotalBytes());
  memory->tensors_[tensor] = std::move(made);
  return Bind(tensor, memory);
}

bool PreparedRun::Start(const OpKernelContext::Params& params, absl::Span<const Tensor> arguments,
                        RunMemory* memory) const {
  if (!Claim(memory)) return false;
  bool bound = true;
  for (size_t i = 0; i < num_arguments_; ++i) {
    memory->tensors_[i] = arguments[i];
    bound = bound && Bind(i, memory);
  }
  for (int result : early_) bound = bound && Allocate(params, result, memory);
  if (!bound) Abandon(memory);
  return bound;
}

std::vector<Tensor> PreparedRun::Results(const RunMemory& memory) const {
  std::vector<Tensor> results;
  results.reserve(results_.size());
  for (int result : results_) results.push_back(memory.tensors_[result]);
  return results;
}

absl::Status PreparedRun::Finish(OpKernelContext::Params* params, RunMemory* memory,
                                 std::vector<Tensor>* results, bool* done) const {
  *done = false;
  const absl::Status status = RunItems(params, memory, done);
  if (*done && status.ok()) *results = Results(*memory);
  Abandon(memory);
  return status;
}

void PreparedRun::Abandon(RunMemory* memory) const {
  for (const Open& open : open_) memory->tensors_[open.tensor] = Tensor();
}

absl::Status PreparedRun::RunItems(OpKernelContext::Params* params, RunMemory* memory,
                                   bool* done) const {
  std::vector<Tensor>& tensors = memory->tensors_;
  int dropped = 0;
  for (const Item& item : items_) {
    const SequenceStep& step = steps_[item.step];
    if (item.launch == nullptr) {
      const absl::Status status = step.Run(params, &tensors, nullptr);
      if (!status.ok()) {
        *done = true;
        return status;
      }
      for (int i = 0; i < step.kernel->num_outputs(); ++i) {
        const int t = step.first_output + i;
        if (open_[open_index_[t]].pointers.empty()) continue;
        if (!tensors_[t].Describes(tensors[t]) || !Bind(t, memory)) return absl::OkStatus();
      }
      continue;
    }
    if (item.open_dst >= 0 && tensors[item.open_dst].data() == nullptr &&
        !Allocate(*params, item.open_dst, memory)) {
      return absl::OkStatus();
    }
    {
      const tsl::profiler::TraceMe profiled([&] { return ProfiledName(*step.kernel); });
      float* const* const pointers = memory->pointers_.data() + item.first_pointer;
      item.launch->Run({pointers, pointers[item.num_inputs], pointers[item.num_inputs + 1]});
    }
    for (; dropped < item.drops_end; ++dropped) tensors[drops_[dropped]] = Tensor();
  }
  *done = true;
  return absl::OkStatus();
}

}  // namespace bd
