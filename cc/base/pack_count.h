// How often weights have been packed in this process: for tests that weights are packed once.
#pragma once

#include <cstdint>

namespace bd {

void CountPack();
int64_t PackCount();

}  // namespace bd
