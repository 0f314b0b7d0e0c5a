// How often weights have been packed in this process: for tests that weights are packed once.
#ifndef CC_BASE_PACK_COUNT_H_
#define CC_BASE_PACK_COUNT_H_

#include <cstdint>

namespace bd {

void CountPack();
int64_t PackCount();

}  // namespace bd

#endif  // CC_BASE_PACK_COUNT_H_
