#include "cc/base/threads/pool_size.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace bd {
namespace {

// Of a machine with 64 cores.
PoolSizeHints Machine() {
  PoolSizeHints hints;
  hints.affinity_cpus = hints.cores = 64;
  return hints;
}

void ExpectSize(const PoolSizeHints& hints, int threads, const std::string& source) {
  const PoolSize size = DecidePoolSize(hints);
  EXPECT_EQ(size.threads, threads) << size.source;
  EXPECT_NE(std::string(size.source).find(source), std::string::npos) << size.source;
}

TEST(PoolSize, TheCpusWhereNobodySaysAnything) {
  ExpectSize(Machine(), 64, "CPUs that this process may run on");
  PoolSizeHints hints = Machine();
  hints.tensorflow = 64;  // TensorFlow takes these unasked
  hints.tf_environment = hints.omp_environment = "";
  ExpectSize(hints, 64, "CPUs that this process may run on");
}

// TensorFlow takes a thread a hyperthread unasked, which says nothing to us.
TEST(PoolSize, AThreadACore) {
  PoolSizeHints hints = Machine();
  hints.affinity_cpus = 128;
  ExpectSize(hints, 64, "may run on");
  hints.tensorflow = 128;
  ExpectSize(hints, 64, "may run on");
  hints.cgroup_cpus = 80;
  ExpectSize(hints, 64, "may run on");
  hints.tensorflow = 64;
  ExpectSize(hints, 64, "TensorFlow's");
}

TEST(PoolSize, ControlGroupsRoundUp) {
  const std::pair<double, int> cases[] = {{0.01, 1}, {0.5, 1}, {1, 1}, {1.01, 2}, {63.5, 64}};
  for (const auto& [cpus, threads] : cases) {
    PoolSizeHints hints = Machine();
    hints.tensorflow = 64;
    hints.cgroup_cpus = cpus;
    EXPECT_EQ(DecidePoolSize(hints).threads, threads) << cpus;
  }
  PoolSizeHints hints = Machine();
  hints.cgroup_cpus = 0.5;
  ExpectSize(hints, 1, "control group");
  hints.cgroup_cpus = 100;
  ExpectSize(hints, 64, "may run on");
}

TEST(PoolSize, OmpOnlyLowers) {
  PoolSizeHints hints = Machine();
  hints.omp_environment = "1";
  ExpectSize(hints, 1, "OMP_NUM_THREADS");
  hints.omp_environment = "6,2";
  ExpectSize(hints, 6, "OMP_NUM_THREADS");
  hints.omp_environment = "128";
  ExpectSize(hints, 64, "may run on");
  hints.omp_environment = "8";
  hints.cgroup_cpus = 3;
  ExpectSize(hints, 3, "control group");
  hints.omp_environment = "2";
  ExpectSize(hints, 2, "OMP_NUM_THREADS");
}

TEST(PoolSize, OrderOfWhoSpeaks) {
  PoolSizeHints hints = Machine();
  hints.cgroup_cpus = 2;
  hints.omp_environment = "1";
  hints.tf_environment = "12";
  ExpectSize(hints, 12, "TF_NUM_INTRAOP_THREADS");
  hints.tensorflow = 64;
  ExpectSize(hints, 12, "TF_NUM_INTRAOP_THREADS");
  hints.tensorflow = 5;
  ExpectSize(hints, 5, "TensorFlow's intra-op setting");
  hints.told = 3;
  ExpectSize(hints, 3, "bd.set_threads");
}

TEST(PoolSize, NumbersOfNoSenseSayNothing) {
  for (const char* text : {"0", "-4", "four", "4x", " ", "1e3", ","}) {
    PoolSizeHints hints = Machine();
    hints.tf_environment = hints.omp_environment = text;
    ExpectSize(hints, 64, "may run on");
  }
}

TEST(PoolSize, IsBounded) {
  PoolSizeHints hints = Machine();
  hints.tf_environment = "99999999999999999999";
  ExpectSize(hints, kMostPoolThreads, "TF_NUM_INTRAOP_THREADS");
  hints.tensorflow = 5000;
  ExpectSize(hints, kMostPoolThreads, "TensorFlow's");
}

// Machines as tests/cc/base/machine_test.cc reads them.
TEST(PlanTeams, OfMachinesAndCallers) {
  struct Case {
    int threads, callers, l3_cores;
    std::vector<Teams> rows;
  };
  const Case cases[] = {
      // Two sockets of 56 cores, an L3 each.
      {112, 1, 56, {{1, 112}, {2, 56}, {4, 28}, {8, 14}, {16, 7}, {37, 3}}},
      // EPYC 7763 and 9654, eight cores an L3: one team an L3, and never one and a half.
      {64, 1, 8, {{1, 64}, {2, 32}, {4, 16}, {8, 8}, {16, 4}, {32, 2}}},
      {96, 1, 8, {{1, 96}, {2, 48}, {4, 24}, {12, 8}, {24, 4}, {48, 2}}},
      // Seven cores an L3.
      {84, 1, 7, {{1, 84}, {2, 42}, {4, 21}, {12, 7}, {28, 3}}},
      // Callers that were told of.
      {16, 4, 8, {{4, 16}, {8, 8}, {16, 4}, {32, 2}}},
      {2, 48, 8, {{48, 2}}},
      {1, 96, 8, {}},
      // No threads left over: of 20 on such an L3 two teams of eight would leave four.
      {20, 1, 8, {{1, 20}, {2, 10}, {4, 5}, {10, 2}}},
      // A client's fast cores, a container of 1.5 CPUs, no files.
      {8, 1, 8, {{1, 8}, {2, 4}, {4, 2}}},
      {2, 1, 8, {{1, 2}}},
      {3, 1, 0, {{1, 3}}},
      {1, 1, 0, {}},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(PlanTeams(c.threads, c.callers, c.l3_cores) == c.rows)
        << c.threads << " threads for each of " << c.callers;
  }
}

// One test, since the number is the process's: told, told anew, fixed.
TEST(PoolSize, TheProgramSpeaksUntilTheFirstOp) {
  EXPECT_EQ(PoolCallers(), 1);
  EXPECT_EQ(SetPoolThreads(7, 1), "");
  EXPECT_EQ(PoolSizeFor(2).threads, 7);
  EXPECT_EQ(SetPoolThreads(kMostPoolThreads, 1), "");
  EXPECT_EQ(PoolSizeFor(2).threads, kMostPoolThreads);
  EXPECT_EQ(SetPoolThreads(kMostPoolThreads, kMostPoolThreads), "");
  EXPECT_EQ(PoolCallers(), kMostPoolThreads);
  EXPECT_EQ(SetPoolThreads(7, 2), "");
  EXPECT_EQ(FixPoolSize(0), 3);
  EXPECT_EQ(PoolCallers(), 2);
  EXPECT_EQ(SetPoolThreads(7, 2), "");
  EXPECT_NE(SetPoolThreads(3, 1).find("set_threads comes too late"), std::string::npos);
  EXPECT_EQ(FixPoolSize(5), 3);
}

}  // namespace
}  // namespace bd
