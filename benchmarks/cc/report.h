// Prints a table, or one JSON object on each line.
#pragma once

#include <cstdint>
#include <string>

#include "benchmarks/cc/shapes.h"
#include "benchmarks/cc/turns.h"

namespace bd::layers {

struct RunInfo {
  std::string shapes, cpu, isa, onednn_version, memory, algorithm;
  int threads = 1;
  double fma_peak = 0;        // GFLOP/s
  double read_bandwidth = 0;  // GB/s
};

struct Entry {
  std::string algorithm;
  Timing timing;
};

struct LayerResult {
  Shape shape;
  Entry ours, onednn;
  double difference = 0;  // see LargestDifference
};

class Report {
 public:
  Report(const RunInfo& info, bool json);
  void Add(const LayerResult& layer);
  // Totals over the layers that were added, each as often as its network has it.
  void End();

 private:
  struct Sum {
    double min_us = 0, median_us = 0;
  };
  const RunInfo info_;
  const bool json_;
  Sum ours_, onednn_;
  double flops_ = 0;
  int64_t convolutions_ = 0;
};

}  // namespace bd::layers
