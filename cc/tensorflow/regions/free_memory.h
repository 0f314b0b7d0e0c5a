// Memory that was freed, but that allocators keep for later, goes back to the system.
//
// Where TensorFlow uses oneDNN, its allocator of tensors keeps all memory that it ever had: what
// loading, rewriting and packing freed, several times the weights, would stay resident for good.
// The free blocks of an allocator are those that it hands out, so this asks for them, drops their
// pages, and gives them back: the allocator keeps the addresses, and the system has the memory.
#pragma once

namespace bd {

// Safe to call at any time, on any thread.
void ReturnFreeMemory();

}  // namespace bd
