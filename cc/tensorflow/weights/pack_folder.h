// Packed weights in files: what one process has packed, others map, and its pages count once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "cc/base/threads/thread_pool.h"
#include "cc/layout/pack_key.h"

namespace bd {

// What packed weights were made of, and how. Its bytes, all of them set, stand in the file.
struct PackOrigin {
  PackOrigin(const PackKey& key, const std::array<int64_t, 5>& shape, int64_t bytes, int exponent,
             uint64_t contents);

  std::array<char, 32> algorithm = {}, op = {};
  int64_t dtype, blocking;
  std::array<int64_t, 5> shape;
  int64_t bytes;      // packed
  int64_t exponent;   // PackRequest::exponent's
  uint64_t contents;  // a hash of the plain weights
};

// A folder for the packed weights of one file of plain ones:
//
//   <asset>.packed/<instruction set>-<build id>/<hash of the origin>
//
// or in the folder that TF_BLOCKDNN_CACHE names; 0 there turns it off. The linker's build id
// changes with every routine that packs, so another build reads nothing of this one's. A file
// appears complete, under its name, or not at all, is never written again, and is read only if its
// size, its origin and a checksum are right and nobody but us, the owner of the plain weights and
// root could have written it; one that is not right is removed and packed anew. So are other
// builds' folders.
//
// Safe to use from many threads and processes. Weights that cannot be kept stay in memory, and the
// log says so once.
class PackFolder {
 public:
  // Null where no folder is wanted. `asset`: the path of the plain weights, of `bytes`.
  static std::unique_ptr<PackFolder> Of(const std::string& asset, int64_t bytes, unsigned owner);

  // Mapped read-only; null if there is none.
  std::shared_ptr<const void> Find(const PackOrigin& origin, ThreadPool& pool);

  // Writes and maps them; null where that is impossible.
  std::shared_ptr<const void> Add(const PackOrigin& origin, const void* packed, ThreadPool& pool);

 private:
  PackFolder(std::string asset, std::string place, std::string name, int64_t room, unsigned owner);

  std::string PathOf(const PackOrigin& origin) const;
  // Makes it, and removes those of other builds; false where that is impossible.
  bool Make();
  bool HasRoomFor(int64_t bytes);
  bool Write(int file, const PackOrigin& origin, const void* packed, ThreadPool& pool);
  std::shared_ptr<const void> KeepInMemory(const char* why);

  const std::string asset_, place_, folder_;
  const int64_t room_;    // of all files
  const unsigned owner_;  // of the asset
  std::atomic<int64_t> used_{-1};
  std::atomic<bool> off_{false};  // nothing is written any more
};

}  // namespace bd
