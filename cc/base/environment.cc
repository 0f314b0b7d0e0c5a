#include "cc/base/environment.h"

#include <cstdlib>
#include <cstring>

namespace bd {

bool IsSwitchedOn(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
}

}  // namespace bd
