// A device for kernels that tests make without a session.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/env.h"

namespace bd {

class TestDevice : public tensorflow::DeviceBase {
 public:
  explicit TestDevice(int threads = 1) : DeviceBase(tensorflow::Env::Default()) {
    workers_.num_threads = threads;
    set_tensorflow_cpu_worker_threads(&workers_);
  }
  tensorflow::Allocator* GetAllocator(tensorflow::AllocatorAttributes) override {
    return tensorflow::cpu_allocator();
  }

 private:
  CpuWorkerThreads workers_;
};

inline void AbortUnless(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  abort();
}

}  // namespace bd
