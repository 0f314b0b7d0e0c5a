// How many threads ops run on, by the first of these that says a number:
//
//   1. the program             SetPoolThreads, which is bd.set_threads: for all callers together
//   2. TensorFlow's setting    intra_op_parallelism_threads of the session or of tf.config, where
//                              it differs from the CPUs that TensorFlow takes unasked
//   3. TF_NUM_INTRAOP_THREADS
//   4. the least of            OMP_NUM_THREADS, which speaks to all libraries and can therefore
//                              only lower; the physical cores of the affinity mask, since two
//                              hyperthreads multiply no faster than one and share its L2; the
//                              limit of the control groups, a part of a CPU counted as one
//
// The first op fixes the program's word: plans and scratch are made for a number of threads.
#pragma once

#include <string>
#include <vector>

namespace bd {

constexpr int kMostPoolThreads = 1024;

// What the rule knows; 0 and null where there is nothing.
struct PoolSizeHints {
  int told = 0;  // of each caller
  int tensorflow = 0;
  const char* tf_environment = nullptr;  // TF_NUM_INTRAOP_THREADS
  const char* omp_environment = nullptr;
  int affinity_cpus = 1;  // hyperthreads, each
  int cores = 1;          // that they are of
  double cgroup_cpus = 0;
};

struct PoolSize {
  int threads;
  const char* source;  // what decided, for users
};

// The rule; 1 to kMostPoolThreads. What is no positive number says nothing.
PoolSize DecidePoolSize(const PoolSizeHints& hints);

// The rule here and now; `tensorflow` is the size of its intra-op pool, 0 if not known.
PoolSize PoolSizeFor(int tensorflow);

// The same for an op that is being made; from the first call on the program's word is fixed.
int FixPoolSize(int tensorflow);

// Tells the number, 1 to kMostPoolThreads, which `callers` <= threads that call at the same time
// share in equal parts; an error if it comes too late.
std::string SetPoolThreads(int threads, int callers);

// The callers that were told, 1 if none were.
int PoolCallers();

// Teams that share all threads, one of which a caller leases.
struct Teams {
  int count, threads;  // of each

  bool operator==(const Teams& o) const { return count == o.count && threads == o.threads; }
};

// The ways to share them that a pool goes through as callers become more: one team of `threads`
// for each that was told of, then twice as many and more, until a team has two threads. Teams
// larger than an L3 are whole ones of its `l3_cores`, unless that leaves threads over.
inline std::vector<Teams> PlanTeams(int threads, int callers, int l3_cores) {
  const int all = threads * callers;
  std::vector<Teams> rows;
  for (int of_team = threads; of_team > 1;) {
    rows.push_back({rows.empty() ? callers : all / of_team, of_team});
    of_team /= 2;
    if (l3_cores > 1 && of_team > l3_cores) {
      const int whole = of_team / l3_cores * l3_cores;
      if (all % whole == 0) of_team = whole;
    }
  }
  return rows;
}

// Of this machine.
int CoresOfL3();

}  // namespace bd
