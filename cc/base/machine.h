// What this process has of the machine, and what moving data between its cores and memory costs.
//
// Counts and sizes are read from /sys and from control groups; cycles cannot be read, and are not
// measured when a process starts either: two processes would choose other algorithms, whose sums
// round otherwise. TF_BLOCKDNN_MACHINE names a file that overrides any of them, a line
// "name value" each, with the names below.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace bd {

struct Machine {
  int cpus = 1;   // that the process may be scheduled on
  int cores = 1;  // that these are of: hyperthreads share one, and few efficient ones do not count
  int nodes = 1;  // of memory (NUMA)
  int l3_cores = 0;         // of a kind that share an L3; 0: nothing is known of that
  double granted_cpus = 0;  // what control groups grant; 0: no limit
  // A core's share of its caches.
  int64_t l2_bytes = 1 << 20, l3_bytes = 4 << 20;

  // Cycles of a core, measured on Zen 3 and 4 with one and two threads. To wake threads and to see
  // the last one end; a barrier of threads that are awake.
  double fork_join = 4000, barrier = 3000;
  // A 64-byte line from memory for one thread (26 GB/s), and where more of eight cores pull
  // (38 GB/s).
  double line_one_thread = 9.2, line_shared = 6.3;
  // So much a line beyond L2, and beyond a core's share of L3 on top: such lines come from memory,
  // and the pages of so much scratch, if TensorFlow allocates it, from the system in every call.
  double line_beyond_l2 = 5, line_beyond_l3 = 10;

  // Those of so many threads; of more than two computed, not measured.
  double ForkJoin(int threads) const;
  double Barrier(int threads) const;
  // A line of what `threads` read together from memory, each line once.
  double MemoryLine(int threads) const;

  // A file of TF_BLOCKDNN_MACHINE.
  std::string ToString() const;
  // Takes over what the file says. Returns what is wrong with it, or an empty string.
  std::string Override(std::istream& file);
};

// The machine on which the process may use `cpus`, by the files below `root` that the kernel
// writes; whatever they do not say stays as above.
Machine ReadMachine(const std::string& root, const std::vector<int>& cpus);

// This one, read once. What is wrong with TF_BLOCKDNN_MACHINE is said on stderr.
const Machine& ThisMachine();

}  // namespace bd
