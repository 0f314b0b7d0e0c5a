#include "cc/base/verbose.h"

#include <unistd.h>

#include <cstdio>

#include "cc/base/environment.h"

namespace bd {

bool VerboseEnabled() {
  static const bool enabled = IsSwitchedOn("TF_BLOCKDNN_VERBOSE");
  return enabled;
}

void PrintExecution(const std::string& description, double microseconds) {
  char time[32];
  snprintf(time, sizeof(time), " %.1fus\n", microseconds);
  const std::string line = "tf_blockdnn " + description + time;
  // A line that cannot be written is lost; the computation is not.
  const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(written);
}

}  // namespace bd
