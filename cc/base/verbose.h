// TF_BLOCKDNN_VERBOSE=1: a line on stderr for every executed primitive,
//
//   tf_blockdnn conv avx512 direct [1,2,8,8,16] [3,3,32,64]->[1,4,8,8,16] channels=32
//       padding="SAME" scratch 98304 user packs 73728 in place 35.2us
//
// that is: name, ISA, algorithm, shapes of inputs and outputs, attributes that are not their
// defaults, scratch bytes and who provided them, the bytes into which weights were packed for this
// execution only, whether the result took the memory of an input, and the time it took.
#pragma once

#include <chrono>
#include <string>

namespace bd {

// Read from the environment once; unset, empty and 0 mean no.
bool VerboseEnabled();

// One line, in one write: lines of concurrent executions do not mix.
void PrintExecution(const std::string& description, double microseconds);

// Runs run(); calls describe(), which returns everything on the line but the
// time, only when somebody listens.
template <typename Describe, typename Run>
void RunLogged(Describe&& describe, Run&& run) {
  if (!VerboseEnabled()) return run();
  const auto start = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  PrintExecution(describe(), took.count());
}

}  // namespace bd
