#include "cc/base/cpu_limit.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

namespace bd {
namespace {

constexpr double kNoLimit = 0;

double Lower(double a, double b) {
  if (a == kNoLimit || b == kNoLimit) return std::max(a, b);
  return std::min(a, b);
}

// Of "cpu,cpuacct".
bool Lists(const std::string& list, const std::string& name) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == name) return true;
  }
  return false;
}

// Where a hierarchy of control groups is mounted: the group `root` is the folder `point`.
struct Mount {
  std::string root, point;
  bool unified;  // version 2
};

// Lines of mountinfo (proc(5)): id, parent, device, root, mount point, options, tags, "-", type,
// source, options of the file system. The controllers of version 1 are among the last.
std::vector<Mount> CgroupMounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, type, options;
    Mount mount;
    words >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    while (words >> skipped && skipped != "-") continue;
    words >> type >> skipped >> options;
    mount.unified = type == "cgroup2";
    if (mount.unified || (type == "cgroup" && Lists(options, "cpu"))) mounts.push_back(mount);
  }
  return mounts;
}

// The process's group in the hierarchy of `mount`, from lines "id:controllers:/group", where
// version 2 has no controllers; "" if it is in none.
std::string GroupOf(const std::string& root, const Mount& mount) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (mount.unified ? controllers.empty() : Lists(controllers, "cpu")) {
      return line.substr(second + 1);
    }
  }
  return "";
}

// The group below its mount point: "/a/b", or "" for the mount point itself. A container that
// sees the host's names has its own group as the root of the mount; one with a namespace of its
// own may be told of a group above it ("/../a"), which it cannot see.
std::string BelowMount(const Mount& mount, std::string group) {
  const std::string& top = mount.root;
  if (top != "/" && group.compare(0, top.size(), top) == 0 &&
      (group.size() == top.size() || group[top.size()] == '/')) {
    group.erase(0, top.size());
  }
  if (group.compare(0, 3, "/..") == 0) return "";
  while (!group.empty() && group.back() == '/') group.pop_back();
  return group;
}

double Ratio(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// Of one folder. "max" and -1 say that there is no limit.
double LimitOf(const std::string& folder, bool unified) {
  double quota = 0, period = 0;
  if (unified) {
    std::ifstream(folder + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return Ratio(quota, period);
}

}  // namespace

std::vector<int> AffinityCpus() {
  std::vector<int> list;
  // The kernel refuses a mask that is shorter than its own.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int failed = sched_getaffinity(0, bytes, set);
    const int error = errno;
    for (int cpu = 0; !failed && cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) list.push_back(cpu);
    }
    CPU_FREE(set);
    if (!list.empty() || error != EINVAL) break;
  }
  const int online = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  for (int cpu = 0; list.empty() && cpu < online; ++cpu) list.push_back(cpu);
  return list;
}

double CgroupCpus(const std::string& root) {
  double least = kNoLimit;
  for (const Mount& mount : CgroupMounts(root)) {
    std::string group = BelowMount(mount, GroupOf(root, mount));
    for (;;) {
      least = Lower(least, LimitOf(root + mount.point + group, mount.unified));
      if (group.empty()) break;
      group.erase(group.rfind('/'));
    }
  }
  return least;
}

int AvailableCpus() {
  static const int granted = static_cast<int>(std::ceil(CgroupCpus()));
  const int cpus = static_cast<int>(AffinityCpus().size());
  return granted > 0 ? std::min(cpus, granted) : cpus;
}

}  // namespace bd
