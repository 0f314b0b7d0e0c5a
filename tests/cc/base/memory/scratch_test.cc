#include "cc/base/memory/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace bd {
namespace {

TEST(Scratch, AnEmptyBookNeedsNoMemory) {
  ScratchBook book;
  const ScratchPiece<float> none = book.Book<float>("none", 0);
  const ScratchPiece<float> no_threads = book.Book<float>("no threads", 0, 4);
  EXPECT_EQ(book.bytes(), 0);
  EXPECT_TRUE(book.entries().empty());
  EXPECT_EQ(Scratch(nullptr).Grant(none), nullptr);
  EXPECT_EQ(Scratch(nullptr).Grant(no_threads, 3), nullptr);
}

TEST(Scratch, PiecesLieOneAfterTheOtherOnCacheLines) {
  ScratchBook book;
  const ScratchPiece<float> bias = book.Book<float>("bias", 17);     // 68 bytes: two lines
  const ScratchPiece<int8_t> flags = book.Book<int8_t>("flags", 1);  // one line
  const ScratchPiece<double> sums = book.Book<double>("sums", 8, 3);
  EXPECT_EQ(book.bytes(), 128 + 64 + 3 * 64);

  alignas(64) char memory[384];
  const Scratch scratch(memory);
  EXPECT_EQ(static_cast<void*>(scratch.Grant(bias)), memory);
  EXPECT_EQ(static_cast<void*>(scratch.Grant(flags)), memory + 128);
  for (int thread = 0; thread < 3; ++thread) {
    EXPECT_EQ(static_cast<void*>(scratch.Grant(sums, thread)), memory + 192 + 64 * thread);
  }
}

TEST(Scratch, TheBookNamesItsPieces) {
  ScratchBook book;
  book.Book<float>("a", 16);
  book.Book<float>("nothing", 0);
  book.Book<float>("b", 16, 2);
  ASSERT_EQ(book.entries().size(), 2u);
  EXPECT_STREQ(book.entries()[0].name, "a");
  EXPECT_STREQ(book.entries()[1].name, "b");
  EXPECT_EQ(book.entries()[1].offset, 64u);
  EXPECT_EQ(book.entries()[1].bytes, 128u);
  EXPECT_EQ(book.entries()[1].copies, 2);
}

}  // namespace
}  // namespace bd
