// How many CPUs this process may keep busy.
#pragma once

#include <string>
#include <vector>

namespace bd {

// The CPUs that the calling thread may be scheduled on, as taskset and cpusets set them.
std::vector<int> AffinityCpus();

// The CPUs' time that the process's control groups grant it, in CPUs: the least of cpu.max
// (version 2) and cpu.cfs_quota_us / cpu.cfs_period_us (version 1) from its group up to the
// highest that it can see; 0 where none of them sets a limit. `root` stands before every path
// that is read, /proc/self/cgroup among them.
double CgroupCpus(const std::string& root = "");

// The lower of both, a part of a CPU counted as one; the control groups are read once.
int AvailableCpus();

}  // namespace bd
