#include "cc/tensorflow/weights/pack_folder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/cpu/isa.h"
#include "cc/base/memory/huge_pages.h"
#include "cc/tensorflow/weights/contents.h"
#include "tensorflow/core/platform/logging.h"

namespace bd {
namespace {

// Packed forms of one weight may be several, for several shapes, and each is up to four times as
// large as the weight.
constexpr int64_t kMostGrowth = 8;
// Stay free, so that weights are not what fills a file system: a twentieth of it, and of a large
// one a gigabyte, since shares of a large disk are more than what most disks have left.
constexpr int64_t kFreeShare = 20;
constexpr int64_t kMostFree = int64_t{1} << 30;

constexpr const char* kPart = "part-";  // How the name of a file begins that is not complete.

// What follows the packed weights, at a multiple of 64 bytes: they begin with the file, so
// that they may lie on huge pages.
struct Trailer {
  explicit Trailer(const PackOrigin& origin, uint64_t checksum)
      : origin(origin), checksum(checksum) {}

  std::array<char, 8> format = {'b', 'd', 'p', 'a', 'c', 'k', '0', '1'};
  PackOrigin origin;
  uint64_t checksum;
};
static_assert(std::has_unique_object_representations_v<Trailer>);

int64_t TrailerAt(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::string Hex(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

uint64_t HashOfBytes(const void* data, size_t bytes) {
  uint64_t hash = 0;
  const auto* const each = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = MixHash(hash, each[i]);
  return hash;
}

// The linker's, of the library or program that has this function; empty if it has none.
std::string BuildId() {
  std::string id;
  const auto look = [](dl_phdr_info* info, size_t, void* to) {
    const auto here = reinterpret_cast<uintptr_t>(&BuildId) - info->dlpi_addr;
    const auto* const begin = info->dlpi_phdr;
    const auto* const end = begin + info->dlpi_phnum;
    const auto has_us = [&](const ElfW(Phdr) & part) {
      return part.p_type == PT_LOAD && here - part.p_vaddr < part.p_memsz;
    };
    if (std::none_of(begin, end, has_us)) return 0;
    for (const auto* part = begin; part != end; ++part) {
      if (part->p_type != PT_NOTE) continue;
      const char* note = reinterpret_cast<const char*>(info->dlpi_addr + part->p_vaddr);
      const char* const notes_end = note + part->p_memsz;
      while (note + sizeof(ElfW(Nhdr)) <= notes_end) {
        const auto* const head = reinterpret_cast<const ElfW(Nhdr)*>(note);
        const char* const text = note + sizeof *head + (head->n_namesz + 3) / 4 * 4;
        if (head->n_type == NT_GNU_BUILD_ID) {
          *static_cast<std::string*>(to) = Hex(HashOfBytes(text, head->n_descsz));
          return 1;
        }
        note = text + (head->n_descsz + 3) / 4 * 4;
      }
    }
    return 1;
  };
  dl_iterate_phdr(look, &id);
  return id;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  operator int() const { return number_; }  // NOLINT: as with open()

 private:
  const int number_;
};

// The beginning of a file, on huge pages where its file system has them.
std::shared_ptr<const void> Map(int file, int64_t bytes) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  constexpr int64_t kPage = 4096;
  const int64_t size = (bytes + kPage - 1) / kPage * kPage;
  void* const place = MapHugePages(size, 0);
  if (place == nullptr) return nullptr;
  if (mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED) {
    munmap(place, size);
    return nullptr;
  }
  const size_t huge = size / kHugePage * kHugePage;
  madvise(place, huge, MADV_HUGEPAGE);
  madvise(place, huge, kCollapse);
  return std::shared_ptr<const void>(
      place, [size](const void* data) { munmap(const_cast<void*>(data), size); });
}

}  // namespace

PackOrigin::PackOrigin(const PackKey& key, const std::array<int64_t, 5>& shape, int64_t bytes,
                       int exponent, uint64_t contents)
    : dtype(static_cast<int64_t>(key.dtype)),
      blocking(key.blocking),
      shape(shape),
      bytes(bytes),
      exponent(exponent),
      contents(contents) {
  strncpy(algorithm.data(), key.algorithm, algorithm.size());
  strncpy(op.data(), key.op, op.size());
}

std::unique_ptr<PackFolder> PackFolder::Of(const std::string& asset, int64_t bytes,
                                           unsigned owner) {
  static const std::string& build = *new std::string(BuildId());
  const char* const named = getenv("TF_BLOCKDNN_CACHE");
  const bool beside = named == nullptr || *named == '\0';
  if (build.empty() || (!beside && strcmp(named, "0") == 0)) return nullptr;
  std::string place = beside
                          ? absl::StrCat(asset, ".packed")
                          : absl::StrCat(named, "/", Hex(HashOfBytes(asset.data(), asset.size())));
  return std::unique_ptr<PackFolder>(new PackFolder(asset, std::move(place),
                                                    absl::StrCat(IsaName(ActiveIsa()), "-", build),
                                                    kMostGrowth * bytes, owner));
}

PackFolder::PackFolder(std::string asset, std::string place, std::string name, int64_t room,
                       unsigned owner)
    : asset_(std::move(asset)),
      place_(std::move(place)),
      folder_(absl::StrCat(place_, "/", name)),
      room_(room),
      owner_(owner) {}

std::string PackFolder::PathOf(const PackOrigin& origin) const {
  return absl::StrCat(folder_, "/", Hex(HashOfBytes(&origin, sizeof origin)));
}

std::shared_ptr<const void> PackFolder::Find(const PackOrigin& origin, ThreadPool& pool) {
  const std::string path = PathOf(origin);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) return nullptr;
  const bool ours = status.st_uid == geteuid() || status.st_uid == owner_ || status.st_uid == 0;
  if (!ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return nullptr;
  const int64_t trailer_at = TrailerAt(origin.bytes);
  Trailer trailer(origin, 0);
  const bool complete =
      S_ISREG(status.st_mode) &&
      status.st_size == trailer_at + static_cast<int64_t>(sizeof trailer) &&
      pread(file, &trailer, sizeof trailer, trailer_at) == static_cast<ssize_t>(sizeof trailer);
  const Trailer wanted(origin, trailer.checksum);
  if (complete && memcmp(&trailer, &wanted, sizeof wanted) == 0) {
    std::shared_ptr<const void> packed = Map(file, origin.bytes);
    if (packed == nullptr || HashOf(packed.get(), origin.bytes, pool) == trailer.checksum) {
      return packed;
    }
  }
  unlink(path.c_str());
  return nullptr;
}

std::shared_ptr<const void> PackFolder::Add(const PackOrigin& origin, const void* packed,
                                            ThreadPool& pool) {
  if (off_) return nullptr;
  if (!Make()) return KeepInMemory(strerror(errno));
  if (!HasRoomFor(origin.bytes)) return KeepInMemory("there is no room for more of them");
  std::string part = absl::StrCat(folder_, "/", kPart, "XXXXXX");
  const Descriptor file(mkostemp(part.data(), O_CLOEXEC));
  if (file < 0) return KeepInMemory(strerror(errno));
  std::shared_ptr<const void> mapped;
  const std::string path = PathOf(origin);
  if (!Write(file, origin, packed, pool)) {
    KeepInMemory(strerror(errno));
  } else if (link(part.c_str(), path.c_str()) == 0 ||
             (errno != EEXIST && rename(part.c_str(), path.c_str()) == 0)) {
    // By its name, which lists of mappings show. Some file systems have no links.
    const Descriptor again(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (again >= 0) mapped = Map(again, origin.bytes);
  } else if (errno == EEXIST) {  // Another process was as quick.
    mapped = Find(origin, pool);
    if (mapped == nullptr) KeepInMemory("what lies there is not ours");
  } else {
    KeepInMemory(strerror(errno));
  }
  unlink(part.c_str());
  return mapped;
}

bool PackFolder::Make() {
  if (used_ >= 0) return true;
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(place_, error);
  if (error) {
    errno = error.value();
    return false;
  }
  const bool is_new = mkdir(folder_.c_str(), 0777) == 0;
  if (!is_new && errno != EEXIST) return false;
  // Loops that call for the next entry throw where a folder cannot be read.
  const auto each = [](const std::string& folder, auto look) {
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) look(*entry);
  };
  if (is_new) {
    const std::string kind = absl::StrCat(IsaName(ActiveIsa()), "-");
    each(place_, [&](const fs::directory_entry& other) {
      const bool same = other.path().filename().string().compare(0, kind.size(), kind) == 0;
      std::error_code ignored;
      if (same && other.path() != folder_) fs::remove_all(other.path(), ignored);
    });
  }
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  int64_t used = 0;
  each(folder_, [&](const fs::directory_entry& one) {
    std::error_code gone;
    const auto size = static_cast<int64_t>(one.file_size(gone));
    if (gone) return;
    const bool is_part = one.path().filename().string().compare(0, strlen(kPart), kPart) == 0;
    if (is_part && one.last_write_time(gone) < long_ago) {
      fs::remove(one.path(), gone);  // Who wrote it was killed.
    } else {
      used += size;
    }
  });
  used_ = used;
  return true;
}

bool PackFolder::HasRoomFor(int64_t bytes) {
  struct statvfs disk;
  if (statvfs(folder_.c_str(), &disk) != 0) return false;
  const int64_t unit = static_cast<int64_t>(disk.f_frsize);
  const int64_t share = static_cast<int64_t>(disk.f_blocks / kFreeShare) * unit;
  const int64_t stays = std::min(share, kMostFree);
  if (static_cast<int64_t>(disk.f_bavail) * unit - bytes < stays) return false;
  return used_.fetch_add(bytes) + bytes <= room_;
}

bool PackFolder::Write(int file, const PackOrigin& origin, const void* packed, ThreadPool& pool) {
  const auto put = [file](const void* data, int64_t bytes, int64_t at) {
    // All at once, where the system's cache makes its pages as large as what is written.
    while (bytes > 0) {
      const ssize_t done = pwrite(file, data, bytes, at);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      data = static_cast<const char*>(data) + done;
      bytes -= done;
      at += done;
    }
    return true;
  };
  const Trailer trailer(origin, HashOf(packed, origin.bytes, pool));
  return put(packed, origin.bytes, 0) && put(&trailer, sizeof trailer, TrailerAt(origin.bytes)) &&
         fchmod(file, 0444) == 0;
}

std::shared_ptr<const void> PackFolder::KeepInMemory(const char* why) {
  if (!off_.exchange(true)) {
    LOG(WARNING) << "tf_blockdnn: packed weights of " << asset_
                 << " stay in this process's memory, not in " << place_ << ": " << why;
  }
  return nullptr;
}

}  // namespace bd
