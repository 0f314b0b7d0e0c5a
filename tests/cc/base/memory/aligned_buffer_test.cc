#include "cc/base/memory/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "cc/base/memory/slabs.h"

namespace bd {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

uintptr_t Address(const AlignedBuffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data());
}

TEST(AlignedBuffer, IsAlignedAndWritableToTheLastByte) {
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}, kMegabyte - 1, kMegabyte,
                       2 * kMegabyte, 3 * kMegabyte + 17, 5 * kMegabyte - 4096}) {
    AlignedBuffer buffer(bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(Address(buffer) % AlignedBuffer::kAlignment, 0u);
    memset(buffer.data(), 0x5a, bytes);
    EXPECT_EQ(buffer.As<unsigned char>()[bytes - 1], 0x5a);
  }
}

TEST(AlignedBuffer, LargeBuffersBeginOnAHugePage) {
  for (size_t bytes : {kMegabyte, 9 * kMegabyte + 4}) {
    EXPECT_EQ(Address(AlignedBuffer(bytes)) % (2 * kMegabyte), 0u);
  }
}

// The heap's huge pages fall apart when free memory is given back. Under AddressSanitizer small
// buffers lie there all the same.
#ifndef __SANITIZE_ADDRESS__
TEST(AlignedBuffer, SmallBuffersLieInSlabs) {
  EXPECT_EQ(Slabs::Get().free_bytes(), 0u);
  const AlignedBuffer first(kMegabyte / 2), second(1000);
  EXPECT_EQ(Slabs::Get().free_bytes(), Slabs::kSlab - kMegabyte / 2 - 1024);
  EXPECT_EQ(Address(first) / Slabs::kSlab, Address(second) / Slabs::kSlab);
}
#endif

TEST(AlignedBuffer, EmptyAndImpossibleSizesHoldNothing) {
  for (size_t bytes : {size_t{0}, SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size(), 0u);
  }
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
}

TEST(AlignedBuffer, MovesItsMemory) {
  for (size_t bytes : {size_t{100}, 2 * kMegabyte}) {
    AlignedBuffer first(bytes);
    void* const data = first.data();
    AlignedBuffer second(std::move(first));
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(first.data(), nullptr);
    AlignedBuffer third(10);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.size(), bytes);
  }
}

}  // namespace
}  // namespace bd
