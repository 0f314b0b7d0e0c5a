#include "cc/base/scratch.h"

namespace bd {

size_t ScratchBook::Reserve(const char* name, size_t bytes) {
  const size_t offset = bytes_;
  if (bytes > 0) entries_.push_back({name, offset, bytes});
  bytes_ += bytes;
  return offset;
}

}  // namespace bd
