// What the machine can do, measured with the threads that compute.
#ifndef BENCHMARKS_CC_MACHINE_H_
#define BENCHMARKS_CC_MACHINE_H_

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"

namespace bd::layers {

struct Caches {
  int64_t l2_bytes;  // of a core
  int64_t l3_bytes;  // shared
};
Caches DetectCaches();

std::string CpuName();

// Multiply-adds of all threads together, in GFLOP/s: of float32, and of bfloat16 and of bytes as
// register tiles make them.
double MeasureFmaPeak(Isa isa, ThreadPool& pool);
double MeasureBf16Peak(Isa isa, ThreadPool& pool);
double MeasureInt8Peak(Isa isa, ThreadPool& pool);

// Reading four times the L3 cache with all threads, in GB/s.
double MeasureReadBandwidth(Isa isa, ThreadPool& pool);

}  // namespace bd::layers

#endif  // BENCHMARKS_CC_MACHINE_H_
