// Switches in the environment.
#ifndef CC_BASE_ENVIRONMENT_H_
#define CC_BASE_ENVIRONMENT_H_

namespace bd {

// Whether the variable is set to anything but nothing and 0.
bool IsSwitchedOn(const char* variable);

}  // namespace bd

#endif  // CC_BASE_ENVIRONMENT_H_
