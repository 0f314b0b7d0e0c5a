#include "cc/base/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "cc/base/cpu_limit.h"
#include "cc/base/str_cat.h"

namespace bd {
namespace {

std::string Line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

// Of "0-3,8".
std::vector<int> CpuList(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int numbers = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    for (int cpu = first; numbers > 0 && cpu <= (numbers == 1 ? first : last); ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

// Of "1024K".
int64_t Bytes(const std::string& text) {
  char* unit;
  const int64_t number = std::strtoll(text.c_str(), &unit, 10);
  return *unit == 'K' ? number << 10 : *unit == 'M' ? number << 20 : number;
}

// Of a core's caches: how much each holds, and how many CPUs share it.
struct Cache {
  int64_t bytes = 0;
  std::vector<int> cpus;
};

Cache CacheOf(const std::string& cpu, int level) {
  for (int index = 0;; ++index) {
    const std::string folder = StrCat(cpu, "/cache/index", index);
    const std::string its_level = Line(folder + "/level");
    if (its_level.empty()) return {};
    if (its_level != std::to_string(level)) continue;
    return {Bytes(Line(folder + "/size")), CpuList(Line(folder + "/shared_cpu_list"))};
  }
}

// A virtual machine shows few of the cores that share its L3: at least so many do.
constexpr int64_t kFewestCoresOfL3 = 8;

struct Core {
  int cpu;          // the first of them
  int64_t threads;  // hyperthreads, whoever may use them
};

// Each cache of the cores is looked at once; the least share is taken, and the most cores.
void ReadCaches(const std::string& folder, const std::vector<Core>& cores, int64_t* l2_bytes,
                int64_t* l3_bytes, int* l3_cores) {
  std::set<int> seen;
  for (const Core& core : cores) {
    if (seen.count(core.cpu) > 0) continue;
    const std::string cpu = StrCat(folder, "/cpu", core.cpu);
    const Cache l2 = CacheOf(cpu, 2), l3 = CacheOf(cpu, 3);
    const auto share = [&](const Cache& cache, int64_t fewest) {
      const int64_t sharing = static_cast<int64_t>(cache.cpus.size()) / core.threads;
      return cache.bytes / std::max(fewest, sharing);
    };
    if (l2.bytes > 0) *l2_bytes = std::min(*l2_bytes, share(l2, 1));
    if (l3.bytes > 0) *l3_bytes = std::min(*l3_bytes, share(l3, kFewestCoresOfL3));
    const int sharing =
        static_cast<int>(std::count_if(cores.begin(), cores.end(), [&](const Core& other) {
          return std::count(l3.cpus.begin(), l3.cpus.end(), other.cpu) > 0;
        }));
    *l3_cores = std::max(*l3_cores, sharing);
    // Cores of a kind that share an L3 have the same L2.
    for (const Cache& cache : {l2, l3}) seen.insert(cache.cpus.begin(), cache.cpus.end());
  }
}

// Calls field(name, &member) for each.
template <typename M, typename Field>
void VisitFields(M& m, Field&& field) {
  field("cpus", &m.cpus);
  field("cores", &m.cores);
  field("nodes", &m.nodes);
  field("l3_cores", &m.l3_cores);
  field("granted_cpus", &m.granted_cpus);
  field("l2_bytes", &m.l2_bytes);
  field("l3_bytes", &m.l3_bytes);
  field("fork_join", &m.fork_join);
  field("barrier", &m.barrier);
  field("line_one_thread", &m.line_one_thread);
  field("line_shared", &m.line_shared);
  field("line_beyond_l2", &m.line_beyond_l2);
  field("line_beyond_l3", &m.line_beyond_l3);
}

}  // namespace

// Each doubling of the threads is another transfer of a line; so grow barriers that others have
// measured: 2.0 to 2.5 us of four threads, 3.1 of eight (ggml on EPYC).
double Machine::Barrier(int threads) const {
  return barrier * std::ceil(std::log2(std::max(2, threads)));
}

double Machine::ForkJoin(int threads) const { return fork_join + Barrier(threads) - barrier; }

double Machine::MemoryLine(int threads) const {
  // Eight cores are about what shares an L3, or a channel or two of memory; a node has eight times
  // as much at most.
  const int eights = std::clamp((threads + 7) / 8, 1, 8 * nodes);
  return std::max(line_one_thread / threads, line_shared / eights);
}

std::string Machine::ToString() const {
  std::ostringstream out;
  VisitFields(*this, [&](const char* name, auto* value) { out << name << " " << *value << "\n"; });
  return out.str();
}

std::string Machine::Override(std::istream& file) {
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name[0] == '#') continue;
    bool taken = false;
    VisitFields(*this, [&](const char* field, auto* value) {
      auto number = *value;
      if (name != field || !(words >> number) || number < 0) return;
      taken = true;
      *value = number;
    });
    if (!taken) return "\"" + line + "\" is no name and number of a machine";
  }
  if (std::min({cpus, cores, nodes}) < 1 || std::min(l2_bytes, l3_bytes) < 1) {
    return "CPUs, cores, nodes and bytes are positive";
  }
  return "";
}

Machine ReadMachine(const std::string& root, const std::vector<int>& cpus) {
  Machine machine;
  machine.cpus = std::max<int>(1, cpus.size());
  machine.granted_cpus = CgroupCpus(root);
  const std::string folder = root + "/sys/devices/system/cpu";
  const std::vector<int> efficient = CpuList(Line(root + "/sys/devices/cpu_atom/cpus"));
  const std::set<int> may(cpus.begin(), cpus.end()), slow(efficient.begin(), efficient.end());
  std::vector<Core> fast_cores, slow_cores;
  std::set<int> seen;
  for (int cpu : cpus) {
    if (!seen.insert(cpu).second) continue;
    const std::string path = StrCat(folder, "/cpu", cpu, "/topology/");
    const std::vector<int> siblings = CpuList(Line(path + "thread_siblings_list"));
    seen.insert(siblings.begin(), siblings.end());
    const int64_t threads = std::max<int64_t>(1, siblings.size());
    (slow.count(cpu) > 0 ? slow_cores : fast_cores).push_back({cpu, threads});
  }
  // An efficient core computes at about half the pace, and what is cut into equal parts waits for
  // it; twice as many of them are worth it.
  const bool uses_slow = slow_cores.size() >= 2 * fast_cores.size();
  machine.cores = std::max<int>(1, fast_cores.size() + (uses_slow ? slow_cores.size() : 0));
  int64_t l2_bytes = INT64_MAX, l3_bytes = INT64_MAX;
  ReadCaches(folder, fast_cores, &l2_bytes, &l3_bytes, &machine.l3_cores);
  if (uses_slow) ReadCaches(folder, slow_cores, &l2_bytes, &l3_bytes, &machine.l3_cores);
  if (l2_bytes < INT64_MAX) machine.l2_bytes = l2_bytes;
  if (l3_bytes < INT64_MAX) machine.l3_bytes = l3_bytes;
  int nodes = 0;
  for (int node : CpuList(Line(root + "/sys/devices/system/node/online"))) {
    const std::string path =
        root + "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist";
    const std::vector<int> list = CpuList(Line(path));
    nodes += std::any_of(list.begin(), list.end(), [&](int cpu) { return may.count(cpu) > 0; });
  }
  machine.nodes = std::max(1, nodes);
  return machine;
}

const Machine& ThisMachine() {
  static const Machine machine = [] {
    Machine m = ReadMachine("", AffinityCpus());
    const char* path = std::getenv("TF_BLOCKDNN_MACHINE");
    if (path == nullptr || *path == '\0') return m;
    std::ifstream file(path);
    Machine told = m;
    const std::string error = file ? told.Override(file) : "it cannot be read";
    if (error.empty()) return told;
    std::fprintf(stderr, "tf_blockdnn: TF_BLOCKDNN_MACHINE=%s is ignored: %s\n", path,
                 error.c_str());
    return m;
  }();
  return machine;
}

}  // namespace bd
