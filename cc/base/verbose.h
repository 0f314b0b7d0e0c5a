// TF_BLOCKDNN_VERBOSE=1: a line on stderr for every executed primitive,
//
//   tf_blockdnn conv avx512 direct nChw16c[1,2,8,8,16]->nChw16c[1,4,8,8,16] k3x3 s1x1 d1x1
//       p1x1 g1 scratch 98304 user "eltwise(relu)" 35.2us
//
// that is: name, ISA, algorithm, layouts and shapes, window, scratch bytes and who
// provided them, post-ops, and the time it took. "packs N" follows the scratch where
// weights were packed into N bytes for this execution only.
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
