#include "cc/base/threads/pool_size.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>

#include "cc/base/machine.h"

namespace bd {
namespace {

// What was told, threads of a caller and callers, and whether ops rely on it: one word, since all
// change together.
constexpr int kFixed = 1 << 30, kCallerBits = 12;
std::atomic<int> g_told{0};

// The leading number of "4" or of OpenMP's list for nested regions, "4,2"; 0 for anything else.
int Number(const char* text) {
  if (text == nullptr) return 0;
  char* end;
  const long number = strtol(text, &end, 10);
  while (*end == ' ') ++end;
  if (end == text || (*end != '\0' && *end != ',')) return 0;
  return static_cast<int>(std::clamp(number, 0L, long{kMostPoolThreads}));
}

}  // namespace

PoolSize DecidePoolSize(const PoolSizeHints& hints) {
  const auto at_most = [](int threads) { return std::min(threads, kMostPoolThreads); };
  if (hints.told > 0) return {at_most(hints.told), "bd.set_threads"};
  if (hints.tensorflow > 0 && hints.tensorflow != hints.affinity_cpus) {
    return {at_most(hints.tensorflow), "TensorFlow's intra-op setting"};
  }
  if (const int threads = Number(hints.tf_environment)) return {threads, "TF_NUM_INTRAOP_THREADS"};
  PoolSize size = {at_most(hints.cores), "the cores of the CPUs that this process may run on"};
  const double granted = std::ceil(hints.cgroup_cpus);
  if (granted > 0 && granted < size.threads) {
    size = {static_cast<int>(granted), "the CPU limit of the control group"};
  }
  const int omp = Number(hints.omp_environment);
  if (omp > 0 && omp < size.threads) size = {omp, "OMP_NUM_THREADS"};
  return size;
}

PoolSize PoolSizeFor(int tensorflow) {
  const Machine& machine = ThisMachine();
  PoolSizeHints hints;
  hints.told = (g_told.load(std::memory_order_relaxed) & ~kFixed) >> kCallerBits;
  hints.tensorflow = tensorflow;
  hints.tf_environment = getenv("TF_NUM_INTRAOP_THREADS");
  hints.omp_environment = getenv("OMP_NUM_THREADS");
  hints.affinity_cpus = machine.cpus;
  hints.cores = machine.cores;
  hints.cgroup_cpus = machine.granted_cpus;
  return DecidePoolSize(hints);
}

int FixPoolSize(int tensorflow) {
  g_told.fetch_or(kFixed, std::memory_order_relaxed);
  return PoolSizeFor(tensorflow).threads;
}

std::string SetPoolThreads(int threads, int callers) {
  const int told = threads / callers << kCallerBits | callers;
  int seen = g_told.load(std::memory_order_relaxed);
  do {
    if (seen & kFixed) {
      return (seen & ~kFixed) == told
                 ? ""
                 : "set_threads comes too late: ops of this process have their threads already; "
                   "call it before the first op, model or memory plan";
    }
  } while (!g_told.compare_exchange_weak(seen, told, std::memory_order_relaxed));
  return "";
}

int CoresOfL3() { return ThisMachine().l3_cores; }

int PoolCallers() {
  const int told = g_told.load(std::memory_order_relaxed) & ((1 << kCallerBits) - 1);
  return std::max(1, told);
}

}  // namespace bd
