#include "cc/base/cpu_limit.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace bd {
namespace {

namespace fs = std::filesystem;

// A machine's files below a folder of their own.
class Machine {
 public:
  Machine() : root_(fs::path(testing::TempDir()) / fs::path("machine")) { fs::remove_all(root_); }
  ~Machine() { fs::remove_all(root_); }

  Machine& Has(const std::string& path, const std::string& text) {
    fs::create_directories((root_.string() + path).substr(0, (root_.string() + path).rfind('/')));
    std::ofstream(root_.string() + path) << text << "\n";
    return *this;
  }
  double Cpus() const { return CgroupCpus(root_.string()); }

 private:
  const fs::path root_;
};

constexpr char kMounts[] = "/proc/self/mountinfo", kGroup[] = "/proc/self/cgroup";
constexpr char kUnified[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw";
constexpr char kCpu[] =
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct";

TEST(CgroupCpus, OfAMachineWithoutControlGroups) {
  EXPECT_EQ(Machine().Cpus(), 0);
  EXPECT_EQ(Machine().Has(kMounts, "22 1 8:1 / / rw - ext4 /dev/sda rw").Cpus(), 0);
}

TEST(CgroupCpus, Version2) {
  Machine m;
  m.Has(kMounts, kUnified).Has(kGroup, "0::/app.slice/one");
  EXPECT_EQ(m.Cpus(), 0);
  m.Has("/sys/fs/cgroup/app.slice/one/cpu.max", "max 100000");
  EXPECT_EQ(m.Cpus(), 0);
  m.Has("/sys/fs/cgroup/app.slice/one/cpu.max", "50000 100000");
  EXPECT_EQ(m.Cpus(), 0.5);
}

TEST(CgroupCpus, TheLeastOnTheWayUpHolds) {
  Machine m;
  m.Has(kMounts, kUnified).Has(kGroup, "0::/a/b/c");
  m.Has("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000");
  EXPECT_EQ(m.Cpus(), 8);
  m.Has("/sys/fs/cgroup/a/cpu.max", "250000 100000");
  EXPECT_EQ(m.Cpus(), 2.5);
  m.Has("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  EXPECT_EQ(m.Cpus(), 2.5);
  m.Has("/sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_EQ(m.Cpus(), 1);
  m.Has("/sys/fs/cgroup/other/cpu.max", "1000 100000");
  EXPECT_EQ(m.Cpus(), 1);
}

TEST(CgroupCpus, Version1) {
  Machine m;
  m.Has(kMounts, kCpu).Has(kGroup, "9:name=systemd:/x\n3:memory:/m\n2:cpu,cpuacct:/kube/pod");
  EXPECT_EQ(m.Cpus(), 0);
  m.Has("/sys/fs/cgroup/cpu,cpuacct/kube/pod/cpu.cfs_quota_us", "-1");
  m.Has("/sys/fs/cgroup/cpu,cpuacct/kube/pod/cpu.cfs_period_us", "100000");
  EXPECT_EQ(m.Cpus(), 0);
  m.Has("/sys/fs/cgroup/cpu,cpuacct/kube/pod/cpu.cfs_quota_us", "150000");
  EXPECT_EQ(m.Cpus(), 1.5);
  m.Has("/sys/fs/cgroup/cpu,cpuacct/kube/cpu.cfs_quota_us", "60000");
  m.Has("/sys/fs/cgroup/cpu,cpuacct/kube/cpu.cfs_period_us", "50000");
  EXPECT_EQ(m.Cpus(), 1.2);
}

// Docker without a namespace for control groups: names are the host's, the mount is the container.
TEST(CgroupCpus, TheMountIsTheContainersGroup) {
  Machine m;
  m.Has(kMounts, "32 23 0:28 /docker/f00 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu");
  m.Has(kGroup, "2:cpu:/docker/f00");
  m.Has("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000");
  m.Has("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(m.Cpus(), 0.5);
  m.Has(kGroup, "2:cpu:/docker/f00/inner");
  m.Has("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "25000");
  m.Has("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000");
  EXPECT_EQ(m.Cpus(), 0.25);
}

TEST(CgroupCpus, AGroupAboveTheNamespace) {
  Machine m;
  m.Has(kMounts, kUnified).Has(kGroup, "0::/../../elsewhere");
  m.Has("/sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(m.Cpus(), 3);
}

// Version 1 with the files of version 2 beside it, as systemd mounts them.
TEST(CgroupCpus, BothVersions) {
  Machine m;
  m.Has(kMounts,
        std::string(kCpu) + "\n41 23 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  m.Has(kGroup, "2:cpu,cpuacct:/one\n0::/two");
  m.Has("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "400000");
  m.Has("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_period_us", "100000");
  EXPECT_EQ(m.Cpus(), 4);
  m.Has("/sys/fs/cgroup/unified/two/cpu.max", "200000 100000");
  EXPECT_EQ(m.Cpus(), 2);
}

TEST(CgroupCpus, FilesOfNoSense) {
  for (const char* text : {"", "nonsense", "-5 100000", "100000", "100000 0", "0 100000"}) {
    Machine m;
    m.Has(kMounts, std::string("garbage\n\n") + kUnified).Has(kGroup, "no colon\n0::/");
    m.Has("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(m.Cpus(), 0) << text;
  }
}

TEST(CgroupCpus, OfThisMachineAreNotNegative) { EXPECT_GE(CgroupCpus(), 0); }

TEST(AffinityCpus, FollowsTheMaskOfTheThread) {
  const size_t before = AffinityCpus().size();
  EXPECT_GE(before, 1u);
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(AffinityCpus().size(), 1u);
    EXPECT_EQ(AvailableCpus(), 1);
  }).join();
  EXPECT_EQ(AffinityCpus().size(), before);
  EXPECT_LE(AvailableCpus(), static_cast<int>(before));
}

}  // namespace
}  // namespace bd
