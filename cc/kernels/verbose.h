// TF_BLOCKDNN_VERBOSE=1: a line on stderr for every executed primitive,
//
//   tf_blockdnn conv avx512 direct [1,4,56,56,16]->[1,4,56,56,16] <details> 35.2us
#ifndef CC_KERNELS_VERBOSE_H_
#define CC_KERNELS_VERBOSE_H_

#include <chrono>
#include <string>

namespace bd {

// Read from the environment once.
bool VerboseEnabled();

void PrintExecution(const std::string& description, double microseconds);

// Runs `run`; describes it only when somebody listens.
template <typename Describe, typename Run>
void RunLogged(Describe&& describe, Run&& run) {
  if (!VerboseEnabled()) return run();
  const auto start = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  PrintExecution(describe(), took.count());
}

}  // namespace bd

#endif  // CC_KERNELS_VERBOSE_H_
