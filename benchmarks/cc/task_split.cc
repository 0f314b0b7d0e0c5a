// How evenly the work of layers is shared by more threads than there are. The layers run, and so
// does the pool, but its threads are fibers with clocks of their own: the one that is furthest
// after goes on, and its clock advances by what its task takes here. A thread that waits goes on
// when another has written. So what is planned, taken and stolen is what would be; what lines that
// move between cores take, and caches and memory that cores share, is not in it. What other
// processes take of the core is taken off, but not what they take of its caches.
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/machine.h"
#include "benchmarks/cc/shapes.h"
#include "cc/base/cpu/isa.h"
#include "cc/core/attention/attention.h"
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/rnn/rnn.h"
#include "tests/cc/base/threads/fibers.h"

namespace fibers {
namespace {

struct Clock {
  uint64_t now = 0, work = 0;
  bool waits = false;
  // Of the tasks since the call began, in order: which is next, and what each took in the calls
  // before, at least.
  size_t task = 0;
  std::vector<uint64_t> least;
};
std::vector<Clock>& clocks = *new std::vector<Clock>;  // pools at exit still touch it
uint64_t since = 0;                                    // when the current fiber went on

// Shorter than any task: looking for one.
constexpr uint64_t kLooking = 200;
// Shorter than a task that is compared with that of other calls, which interrupts and neighbours
// disturb now and then.
constexpr uint64_t kTask = 2000;
// Shorter than any time that others have the core.
constexpr uint64_t kNotInterrupted = 20000;

// Weights, whose pages nobody may touch but eight threads, as would share an L3, and these fault.
struct Weights {
  char* begin;
  size_t bytes;
};
std::vector<Weights>& weights = *new std::vector<Weights>;
bool watches_weights = false;
size_t watched_eight = 0;
std::set<std::pair<char*, size_t>>& touched = *new std::set<std::pair<char*, size_t>>;
constexpr size_t kPage = Stack::kPage;

void Protect() {
  for (const Weights& w : weights) mprotect(w.begin, w.bytes, PROT_NONE);
}

void OnFault(int, siginfo_t* info, void*) {
  const uint64_t start = __rdtsc();
  char* const page =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(info->si_addr) & ~(kPage - 1));
  const bool is_watched = std::any_of(weights.begin(), weights.end(), [&](const Weights& w) {
    return page >= w.begin && page < w.begin + w.bytes;
  });
  if (!watches_weights || !is_watched) {
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  touched.insert({page, watched_eight});
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
  constexpr uint64_t kInKernel = 2000;
  since += __rdtsc() - start + kInKernel;
}

// How often weights are read, each time by eight threads that share an L3.
double TimesRead(const std::function<void()>& call) {
  constexpr size_t kStack = 1 << 16;
  static char stack[kStack];
  const stack_t alternate = {stack, 0, kStack};
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  touched.clear();
  watches_weights = true;
  watched_eight = 0;
  Protect();
  call();
  watches_weights = false;
  for (const Weights& w : weights) mprotect(w.begin, w.bytes, PROT_READ | PROT_WRITE);
  signal(SIGSEGV, SIG_DFL);
  std::set<char*> pages;
  for (const auto& [page, eight] : touched) pages.insert(page);
  return static_cast<double>(touched.size()) / std::max<size_t>(1, pages.size());
}

double CoreNanoseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
double CyclesInANanosecond() {
  timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  const uint64_t start = __rdtsc();
  const auto passed = [&] {
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec);
  };
  while (passed() < 1e7) continue;
  return static_cast<double>(__rdtsc() - start) / passed();
}

// Both clocks when they were last looked at.
uint64_t seen = 0;
double seen_nanoseconds = 0;
void Look() {
  seen = __rdtsc();
  seen_nanoseconds = CoreNanoseconds();
}

// Cycles since the fiber went on, without those that other processes had the core.
uint64_t Passed() {
  static const double cycles = CyclesInANanosecond();
  const uint64_t now = __rdtsc(), passed = now - since;
  if (passed <= kNotInterrupted) return passed;
  const uint64_t before = seen;
  const double nanoseconds = seen_nanoseconds;
  Look();
  const double taken =
      static_cast<double>(seen - before) - cycles * (seen_nanoseconds - nanoseconds);
  return passed - static_cast<uint64_t>(std::clamp(taken, 0., static_cast<double>(passed)));
}

void Charge() {
  Clock& clock = clocks[current];
  uint64_t passed = Passed();
  if (passed > kTask) {
    clock.least.resize(std::max(clock.least.size(), clock.task + 1), passed);
    uint64_t& least = clock.least[clock.task++];
    least = std::min(least, passed);
    passed = std::max(least, passed / 2);
  }
  clock.now += passed;
  if (passed > kLooking) clock.work += passed;
}

void Next() {
  clocks.resize(all.size());
  size_t next = all.size();
  while (next == all.size()) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i]->done || clocks[i].waits) continue;
      if (next == all.size() || clocks[i].now < clocks[next].now) next = i;
    }
    if (next == all.size()) {  // all wait until some have waited long enough
      for (Clock& c : clocks) c.waits = false;
    }
  }
  SwitchTo(next);
  if (watches_weights && current / bd::kNeighbours != watched_eight) {
    watched_eight = current / bd::kNeighbours;
    Protect();
  }
  since = __rdtsc();
}

}  // namespace

void OnRead(const void*) {
  Charge();
  Next();
}

void OnWrite(const void*) {
  Charge();
  const uint64_t now = clocks[current].now;
  for (Clock& c : clocks) {
    if (!c.waits) continue;
    c.waits = false;
    c.now = std::max(c.now, now);
  }
  Next();
}

void OnPause() {
  clocks[current].waits = true;
  Next();
}

// What a call takes: until the caller returns, the sum of all fibers, and those that did a part of
// it that counts.
struct Taken {
  double span = 0, work = 0;
  int64_t used = 0;
  double times_read = 1;  // weights
};

Taken Measure(const std::function<void()>& call) {
  clocks.resize(all.size());
  for (Clock& c : clocks) c = {0, 0, false, 0, std::move(c.least)};
  Look();
  since = __rdtsc();
  call();
  Charge();
  Taken taken;
  taken.span = static_cast<double>(clocks[0].now);
  for (const Clock& c : clocks) taken.work += static_cast<double>(c.work);
  for (const Clock& c : clocks) {
    taken.used += static_cast<double>(c.work) * clocks.size() > 0.1 * taken.work;
  }
  return taken;
}

}  // namespace fibers

namespace bd::layers {
namespace {

constexpr char kUsage[] = R"(usage: task_split [--layers] [--threads P] [--batch N] NETWORK...

Prints for numbers of threads and batches: how many times as fast all threads are as one; by how
much those that take part are held up by the slowest; how much more they do together than one alone;
and how often weights are read, where each eight threads share an L3. A network is NAME=FILE, the convolutions of a file of benchmarks/shapes; bert, BERT-base of
128 tokens; or lstm, one of 256 units and 100 steps. With --layers the same of each layer.
)";

struct Question {
  bool layers = false;
  std::vector<int> threads = {8, 16, 32, 64, 128};
  std::vector<int64_t> batches = {1, 8, 64};
  std::vector<std::string> networks;
};

Question Parse(int argc, char** argv) {
  Question q;
  for (int i = 1; i < argc; ++i) {
    const bool has_number = i + 1 < argc;
    if (std::strcmp(argv[i], "--layers") == 0) {
      q.layers = true;
    } else if (std::strcmp(argv[i], "--threads") == 0 && has_number) {
      q.threads = {std::atoi(argv[++i])};
    } else if (std::strcmp(argv[i], "--batch") == 0 && has_number) {
      q.batches = {std::atoi(argv[++i])};
    } else {
      q.networks.push_back(argv[i]);
    }
  }
  return q;
}

// One layer at a batch, planned for `threads`: what runs it.
using Run = std::function<void(ThreadPool&)>;
struct Layer {
  std::string name;
  int64_t count;
  std::function<Run(int64_t batch, int threads)> make;
};

void Check(const std::string& error) {
  if (!error.empty()) throw std::runtime_error(error);
}

std::shared_ptr<Buffer> Floats(int64_t count) {
  auto buffer = std::make_shared<Buffer>(count);
  for (int64_t i = 0; i < count; ++i) buffer->data()[i] = static_cast<float>(i % 13 - 6) / 16;
  return buffer;
}

// The same of packed weights.
std::shared_ptr<Buffer> Weights(int64_t count) {
  auto buffer = Floats(count + 2 * fibers::kPage / 4);
  const uintptr_t mask = ~(fibers::kPage - 1);
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(buffer->data()) + fibers::kPage - 1) & mask;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(buffer->data() + count)) & mask;
  if (begin < end) fibers::weights.push_back({reinterpret_cast<char*>(begin), end - begin});
  return buffer;
}

struct ConvMemory {
  explicit ConvMemory(const ConvPlan& plan)
      : packed(Weights(plan.packed_floats())), bias(Floats(plan.desc.oc() + 16)) {
    args[0] = bias->data();
  }
  std::shared_ptr<Buffer> packed, bias;
  const float* args[1];
};

Run MakeConv(Shape shape, int64_t batch, int threads) {
  shape.n = batch;
  auto plan = std::make_shared<ConvPlan>();
  ConvDesc desc = DescOf(shape, ConvAlgorithm::kAuto);
  desc.keeps_weights = true;
  Check(MakeConvPlan(desc, ActiveIsa(), threads, plan.get()));
  const auto src = Floats(plan->desc.src.elements()), dst = Floats(plan->desc.dst.elements());
  const auto scratch = Floats(plan->scratch.bytes() / 4 + 16);
  const auto memory = std::make_shared<ConvMemory>(*plan);
  return [=](ThreadPool& pool) {
    ConvBuffers b;
    b.src = src->data();
    b.packed = memory->packed->data();
    b.args = memory->args;
    b.dst = dst->data();
    b.scratch = scratch->data();
    RunConv(*plan, b, pool);
  };
}

Run MakePair(Shape first, Shape depthwise, int64_t batch, int threads) {
  first.n = depthwise.n = batch;
  auto plan = std::make_shared<ConvDepthwisePlan>();
  ConvDesc a = DescOf(first, ConvAlgorithm::kAuto), b = DescOf(depthwise, ConvAlgorithm::kAuto);
  a.keeps_weights = b.keeps_weights = true;
  Check(MakeConvDepthwisePlan(a, b, ActiveIsa(), threads, plan.get()));
  const auto src = Floats(a.src.elements()), dst = Floats(b.dst.elements());
  const auto scratch = Floats(plan->scratch.bytes() / 4 + 16);
  const auto of_first = std::make_shared<ConvMemory>(plan->first);
  const auto of_depthwise = std::make_shared<ConvMemory>(plan->depthwise);
  return [=](ThreadPool& pool) {
    ConvDepthwiseBuffers buffers;
    buffers.src = src->data();
    buffers.first_packed = of_first->packed->data();
    buffers.depthwise_packed = of_depthwise->packed->data();
    buffers.first_args = of_first->args;
    buffers.depthwise_args = of_depthwise->args;
    buffers.dst = dst->data();
    buffers.scratch = scratch->data();
    RunConvDepthwise(*plan, buffers, pool);
  };
}

Run MakeProduct(int64_t rows, int64_t k, int64_t n, int threads) {
  auto plan = std::make_shared<GemmPlan>();
  GemmDesc desc;
  desc.k = k;
  desc.n = n;
  desc.pairs = true;
  desc.threads = threads;
  Check(MakeGemmPlan(desc, ActiveIsa(), plan.get()));
  const auto a = Floats(rows * k), c = Floats(rows * n), packed = Weights(plan->packed_bytes / 4);
  const auto bias = Floats(n), scratch = Floats(GemmScratchBytes(*plan, rows) / 4 + 16);
  return [=](ThreadPool& pool) {
    GemmArgs args;
    args.a = a->data();
    args.packed = packed->data();
    args.bias = bias->data();
    args.c = c->data();
    args.scratch = scratch->data();
    RunGemm(*plan, args, rows, pool);
  };
}

Run MakeAttention(int64_t batch, int threads) {
  AttentionDesc desc;
  desc.batch = batch;
  desc.heads = desc.kv_heads = 12;
  desc.queries = desc.keys = 128;
  desc.head_size = desc.value_size = 64;
  desc.q = desc.k = desc.v = desc.dst = {128 * 768, 64, 768};
  auto plan = std::make_shared<AttentionPlan>();
  Check(MakeAttentionPlan(desc, ActiveIsa(), threads, plan.get()));
  const auto q = Floats(batch * 128 * 768), k = Floats(batch * 128 * 768);
  const auto v = Floats(batch * 128 * 768), dst = Floats(batch * 128 * 768);
  const auto scratch = Floats(plan->scratch.bytes() / 4 + 16);
  return [=](ThreadPool& pool) {
    AttentionBuffers b;
    b.q = q->data();
    b.k = k->data();
    b.v = v->data();
    b.dst = dst->data();
    b.scratch = scratch->data();
    RunAttention(*plan, b, pool);
  };
}

Run MakeLstm(int64_t batch, int threads) {
  RnnDesc desc;
  desc.cell = RnnCell::kLstm;
  desc.batch = batch;
  desc.steps = 100;
  desc.inputs = desc.units = 256;
  auto plan = std::make_shared<RnnPlan>();
  Check(MakeRnnPlan(desc, ActiveIsa(), threads, plan.get()));
  const auto src = Floats(batch * 100 * 256), dst = Floats(batch * 100 * 256);
  const auto packed = Weights(plan->packed_floats);
  const auto scratch = Floats(plan->scratch.bytes() / 4 + 16);
  return [=](ThreadPool& pool) {
    RnnBuffers b;
    b.src = {src->data(), 100 * 256, 256};
    b.dst = {dst->data(), 100 * 256, 256};
    b.packed = packed->data();
    b.scratch = scratch->data();
    RunRnn(*plan, b, pool);
  };
}

// Convolutions; a 1x1 and the depthwise one that reads it are one op.
std::vector<Layer> LayersOf(const std::string& file) {
  std::vector<Layer> layers;
  std::vector<Shape> shapes = ReadShapes(file);
  for (Shape& d : shapes) {
    if (d.groups == 1 || d.groups != d.oc || d.groups != d.ic) continue;
    for (Shape& a : shapes) {
      const bool is_read = a.kh * a.kw == 1 && a.groups == 1 && a.oc == d.ic && a.oh() == d.ih &&
                           a.ow() == d.iw && a.count > 0 && d.count > 0;
      if (!is_read) continue;
      const int64_t count = std::min(a.count, d.count);
      a.count -= count;
      d.count -= count;
      layers.push_back(
          {a.ToString() + " and " + d.ToString(), count,
           [a, d](int64_t batch, int threads) { return MakePair(a, d, batch, threads); }});
    }
  }
  for (const Shape& s : shapes) {
    if (s.count == 0) continue;
    layers.push_back({s.ToString(), s.count,
                      [s](int64_t batch, int threads) { return MakeConv(s, batch, threads); }});
  }
  return layers;
}

std::vector<Layer> Bert() {
  std::vector<Layer> layers;
  const auto product = [&](int64_t count, int64_t k, int64_t n) {
    layers.push_back(
        {std::to_string(k) + " > " + std::to_string(n), count,
         [=](int64_t batch, int threads) { return MakeProduct(128 * batch, k, n, threads); }});
  };
  product(48, 768, 768);
  product(12, 768, 3072);
  product(12, 3072, 768);
  layers.push_back({"attention", 12, MakeAttention});
  return layers;
}

fibers::Taken TakenBy(const Run& run, int threads, int64_t batch) {
  const int repeats = batch > 8 ? 3 : 8;
  fibers::Clear();
  fibers::clocks.assign(1, fibers::Clock());
  ThreadPool pool(threads);
  run(pool);
  fibers::Taken least;
  least.span = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const fibers::Taken taken = fibers::Measure([&] { run(pool); });
    if (taken.span < least.span) least = taken;
  }
  if (threads > 1) least.times_read = fibers::TimesRead([&] { run(pool); });
  return least;
}

void Print(const char* name, int threads, int64_t batch, double alone, const fibers::Taken& taken,
           double held) {
  std::printf("%-40s %4d %4d  %6.1f  %6.1f %%  %6.1f %%  %5.1f\n", name, threads,
              static_cast<int>(batch), alone / taken.span, 100 * (held / taken.work - 1),
              100 * (taken.work / alone - 1), taken.times_read);
}

void PrintNetwork(const std::string& name, const std::vector<Layer>& layers, const Question& q) {
  for (int64_t batch : q.batches) {
    const auto taken_by = [&](const Layer& l, int threads) {
      fibers::weights.clear();
      const Run run = l.make(batch, threads);
      return TakenBy(run, threads, batch);
    };
    std::vector<double> alone;
    for (const Layer& l : layers) alone.push_back(taken_by(l, 1).span);
    for (int threads : q.threads) {
      double of_one = 0, held = 0, all_bytes = 0;
      fibers::Taken all;
      all.times_read = 0;
      for (size_t i = 0; i < layers.size(); ++i) {
        const Layer& l = layers[i];
        const double count = static_cast<double>(l.count);
        const fibers::Taken taken = taken_by(l, threads);
        const double of_layer = taken.span * static_cast<double>(taken.used);
        if (q.layers) Print(l.name.c_str(), threads, batch, alone[i], taken, of_layer);
        of_one += count * alone[i];
        all.span += count * taken.span;
        all.work += count * taken.work;
        held += count * of_layer;
        double bytes = 0;
        for (const auto& w : fibers::weights) bytes += count * static_cast<double>(w.bytes);
        all.times_read += bytes * taken.times_read;
        all_bytes += bytes;
      }
      all.times_read /= std::max(1., all_bytes);
      Print(name.c_str(), threads, batch, of_one, all, held);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace bd::layers

int main(int argc, char** argv) {
  using namespace bd::layers;
  const Question question = Parse(argc, argv);
  if (question.networks.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    std::printf("%-40s %4s %4s  %6s  %8s  %8s  %5s\n", "", "P", "n", "faster", "held up",
                "more work", "read");
    for (const std::string& network : question.networks) {
      const size_t equals = network.find('=');
      const std::vector<Layer> layers =
          network == "bert"             ? Bert()
          : network == "lstm"           ? std::vector<Layer>{{"lstm", 1, MakeLstm}}
          : equals == std::string::npos ? throw std::runtime_error(network + " is no NAME=FILE")
                                        : LayersOf(network.substr(equals + 1));
      PrintNetwork(network.substr(0, equals), layers, question);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "task_split: %s\n", error.what());
    return 2;
  }
}
