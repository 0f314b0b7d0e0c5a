#include "cc/base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace bd {
namespace {

namespace fs = std::filesystem;

std::vector<int> Range(int first, int last) {
  std::vector<int> cpus(last - first + 1);
  std::iota(cpus.begin(), cpus.end(), first);
  return cpus;
}

// The files of a machine below a folder of their own, as Linux writes them.
class Tree {
 public:
  Tree() : root_(fs::path(testing::TempDir()) / fs::path("tree")) { fs::remove_all(root_); }
  ~Tree() { fs::remove_all(root_); }

  Tree& Has(const std::string& path, const std::string& text) {
    const fs::path file = root_.string() + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
    return *this;
  }
  // CPUs of one kind: who shares a core, an L2 and an L3 with one is said by lists.
  Tree& Cpu(int cpu, const std::string& siblings, const std::string& l2, const std::string& of_l2,
            const std::string& l3, const std::string& of_l3) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    Has(folder + "/topology/thread_siblings_list", siblings);
    const auto cache = [&](int index, int level, const std::string& size, const std::string& list) {
      const std::string at = folder + "/cache/index" + std::to_string(index);
      Has(at + "/level", std::to_string(level)).Has(at + "/size", size);
      Has(at + "/shared_cpu_list", list);
    };
    cache(0, 1, "32K", siblings);
    cache(1, 1, "32K", siblings);
    cache(2, 2, l2, of_l2);
    if (!l3.empty()) cache(3, 3, l3, of_l3);
    return *this;
  }
  Tree& Node(int node, const std::string& cpus) {
    return Has("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist", cpus);
  }
  Machine Read(const std::vector<int>& cpus) const { return ReadMachine(root_.string(), cpus); }

 private:
  const fs::path root_;
};

void Expect(const Machine& m, int cpus, int cores, int nodes, int l3_cores, int64_t l2_kib,
            int64_t l3_kib) {
  EXPECT_EQ(m.cpus, cpus);
  EXPECT_EQ(m.cores, cores);
  EXPECT_EQ(m.nodes, nodes);
  EXPECT_EQ(m.l3_cores, l3_cores);
  EXPECT_EQ(m.l2_bytes >> 10, l2_kib);
  EXPECT_EQ(m.l3_bytes >> 10, l3_kib);
}

std::string Text(int n) { return std::to_string(n); }

// Two of Xeon Platinum 8480+, with two clusters of memory each (SNC2).
void TwoSockets(Tree* tree) {
  const std::string nodes[] = {"0-27,112-139", "28-55,140-167", "56-83,168-195", "84-111,196-223"};
  for (int i = 0; i < 4; ++i) tree->Node(i, nodes[i]);
  tree->Has("/sys/devices/system/node/online", "0-3");
  for (int cpu = 0; cpu < 224; ++cpu) {
    const int core = cpu % 112;
    const std::string siblings = Text(core) + "," + Text(core + 112);
    tree->Cpu(cpu, siblings, "2048K", siblings, "107520K",
              core < 56 ? "0-55,112-167" : "56-111,168-223");
  }
}

// EPYC 7763: 64 cores, eight of which share an L3.
void EightL3s(Tree* tree) {
  tree->Has("/sys/devices/system/node/online", "0").Node(0, "0-127");
  for (int cpu = 0; cpu < 128; ++cpu) {
    const int core = cpu % 64, first = core / 8 * 8;
    const std::string siblings = Text(core) + "," + Text(core + 64);
    tree->Cpu(
        cpu, siblings, "512K", siblings, "32768K",
        Text(first) + "-" + Text(first + 7) + "," + Text(first + 64) + "-" + Text(first + 71));
  }
}

// Fast cores of two hyperthreads each, whose numbers follow each other, and then efficient ones,
// four of which share an L2.
void Hybrid(Tree* tree, int fast, int efficient) {
  const int all = 2 * fast + efficient;
  tree->Has("/sys/devices/cpu_core/cpus", "0-" + Text(2 * fast - 1));
  tree->Has("/sys/devices/cpu_atom/cpus", Text(2 * fast) + "-" + Text(all - 1));
  tree->Has("/sys/devices/system/node/online", "0").Node(0, "0-" + Text(all - 1));
  for (int cpu = 0; cpu < all; ++cpu) {
    const bool slow = cpu >= 2 * fast;
    const std::string pair = Text(cpu / 2 * 2) + "-" + Text(cpu / 2 * 2 + 1);
    const std::string four = Text(cpu / 4 * 4) + "-" + Text(cpu / 4 * 4 + 3);
    tree->Cpu(cpu, slow ? Text(cpu) : pair, slow ? "2048K" : "1280K", slow ? four : pair, "24576K",
              "0-" + Text(all - 1));
  }
}

TEST(Machine, TwoSocketsWithClusters) {
  Tree tree;
  TwoSockets(&tree);
  Expect(tree.Read(Range(0, 223)), 224, 112, 4, 56, 2048, 107520 / 56);
  // One socket of it, as numactl binds a process; both hyperthreads of four cores; one of each.
  std::vector<int> socket = Range(0, 55), hyperthreads = Range(112, 167);
  socket.insert(socket.end(), hyperthreads.begin(), hyperthreads.end());
  Expect(tree.Read(socket), 112, 56, 2, 56, 2048, 107520 / 56);
  Expect(tree.Read({8, 9, 10, 11, 120, 121, 122, 123}), 8, 4, 1, 4, 2048, 107520 / 56);
  Expect(tree.Read({8, 121}), 2, 2, 1, 2, 2048, 107520 / 56);
}

TEST(Machine, EightL3s) {
  Tree tree;
  EightL3s(&tree);
  Expect(tree.Read(Range(0, 127)), 128, 64, 1, 8, 512, 4096);
  Expect(tree.Read(Range(64, 79)), 16, 16, 1, 8, 512, 4096);
}

// Few efficient cores would hold up the fast ones; twice as many are worth it, and so are those
// that a mask leaves alone.
TEST(Machine, HybridClients) {
  Tree desktop;
  Hybrid(&desktop, 8, 8);
  Expect(desktop.Read(Range(0, 23)), 24, 8, 1, 8, 1280, 24576 / 12);
  Expect(desktop.Read(Range(16, 23)), 8, 8, 1, 8, 512, 24576 / 24);
  Tree laptop;
  Hybrid(&laptop, 2, 8);
  Expect(laptop.Read(Range(0, 11)), 12, 10, 1, 8, 512, 24576 / 12);
}

// A virtual machine of a Zen 4, where two cores of eight see the whole L3.
TEST(Machine, AVirtualMachineSeesFewOfTheCoresOfAnL3) {
  Tree tree;
  for (int cpu : {0, 1}) tree.Cpu(cpu, Text(cpu), "1024K", Text(cpu), "32768K", "0-1");
  Expect(tree.Read({0, 1}), 2, 2, 1, 2, 1024, 4096);
}

TEST(Machine, AContainersQuota) {
  Tree tree;
  EightL3s(&tree);
  tree.Has("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  tree.Has("/proc/self/cgroup", "0::/").Has("/sys/fs/cgroup/cpu.max", "150000 100000");
  const Machine machine = tree.Read(Range(0, 127));
  EXPECT_EQ(machine.granted_cpus, 1.5);
  EXPECT_EQ(machine.cores, 64);
}

TEST(Machine, WithoutFiles) {
  Expect(Tree().Read(Range(0, 3)), 4, 4, 1, 0, 1024, 4096);
  Expect(Tree().Read({}), 1, 1, 1, 0, 1024, 4096);
  Tree nonsense;
  nonsense.Cpu(0, "nonsense", "big", "-", "", "").Has("/sys/devices/system/node/online", "0-");
  Expect(nonsense.Read({0, 1}), 2, 2, 1, 0, 1024, 4096);
  Tree no_l3;
  no_l3.Cpu(0, "0", "256K", "0", "", "");
  Expect(no_l3.Read({0}), 1, 1, 1, 0, 256, 4096);
}

// Two threads are what was measured; more wait for more transfers, and have more memory.
TEST(Machine, CostsOfThreads) {
  Machine m;
  EXPECT_EQ(m.ForkJoin(1), 4000);
  EXPECT_EQ(m.ForkJoin(2), 4000);
  EXPECT_EQ(m.Barrier(1), 3000);
  EXPECT_EQ(m.Barrier(2), 3000);
  EXPECT_EQ(m.Barrier(64), 6 * 3000);
  EXPECT_EQ(m.ForkJoin(64), 4000 + 5 * 3000);
  EXPECT_EQ(m.MemoryLine(1), 9.2);
  for (int threads : {2, 8}) EXPECT_EQ(m.MemoryLine(threads), 6.3);
  EXPECT_EQ(m.MemoryLine(32), 6.3 / 4);
  EXPECT_EQ(m.MemoryLine(256), 6.3 / 8);
  m.nodes = 2;
  EXPECT_EQ(m.MemoryLine(256), 6.3 / 16);
}

TEST(Machine, AFileOverrides) {
  const auto error = [](const std::string& text, Machine* machine) {
    std::istringstream file(text);
    return machine->Override(file);
  };
  Machine m;
  EXPECT_EQ(error("# a server\n\ncores 64\nl3_bytes 1966080\nline_shared 4.5\n", &m), "");
  EXPECT_EQ(m.cores, 64);
  EXPECT_EQ(m.l3_bytes, 1966080);
  EXPECT_EQ(m.line_shared, 4.5);
  EXPECT_EQ(m.l2_bytes, 1 << 20);
  Machine again;
  EXPECT_EQ(error(m.ToString(), &again), "");
  EXPECT_EQ(again.ToString(), m.ToString());
  for (const char* line : {"core 64", "cores", "cores many", "barrier -1"}) {
    EXPECT_EQ(error(line, &m), "\"" + std::string(line) + "\" is no name and number of a machine");
  }
  EXPECT_EQ(error("cores 0", &m), "CPUs, cores, nodes and bytes are positive");
}

}  // namespace
}  // namespace bd
