// Blocks of memory that live at different times, laid over each other in one buffer.
#pragma once

#include <cstdint>
#include <vector>

namespace bd {

// Needed from step `begin` to step `end`, both included.
struct MemoryBlock {
  int begin, end;
  int64_t bytes;
  int64_t offset = 0;
};

// Sets the offsets, multiples of 64: blocks needed at the same step do not overlap. Returns
// the bytes of the buffer.
int64_t PlaceBlocks(std::vector<MemoryBlock>* blocks);

}  // namespace bd
