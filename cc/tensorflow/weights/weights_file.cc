#include "cc/tensorflow/weights/weights_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/fork_safe_mutex.h"
#include "cc/tensorflow/attrs/attr_visitor.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/types.h"

namespace bd {

using tensorflow::Tensor;
using tensorflow::core::RefCountPtr;

// Two files of one identity have the same contents.
struct WeightsFile::Identity {
  explicit Identity(const struct stat& file)
      : device(file.st_dev),
        inode(file.st_ino),
        size(file.st_size),
        seconds(file.st_mtim.tv_sec),
        nanoseconds(file.st_mtim.tv_nsec),
        owner(file.st_uid) {}
  bool operator==(const Identity& other) const {
    const auto all = [](const Identity& i) {
      return std::tie(i.device, i.inode, i.size, i.seconds, i.nanoseconds);
    };
    return all(*this) == all(other);
  }

  dev_t device;
  ino_t inode;
  off_t size;
  time_t seconds;
  long nanoseconds;
  uid_t owner;
};

class WeightsFile::Part : public TensorBuffer {
 public:
  Part(WeightsFile* file, void* data, size_t size) : TensorBuffer(data), file_(file), size_(size) {
    file->Ref();
    file->Ref();
  }
  ~Part() override {
    file_->Unref();
    file_->Unref();
  }
  size_t size() const override { return size_; }
  TensorBuffer* root_buffer() override { return file_; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(size_);
  }

 private:
  WeightsFile* const file_;
  const size_t size_;
};

namespace {

// Those that somebody holds. It outlives all tensors.
struct Mapped {
  ForkSafeMutex mutex;
  std::vector<WeightsFile*> files;
};

Mapped& TheMapped() {
  static Mapped* const mapped = new Mapped;
  return *mapped;
}

absl::Status Cannot(const char* what, const std::string& path) {
  return absl::NotFoundError(
      absl::StrCat("cannot ", what, " the weights in ", path, ": ", strerror(errno)));
}

}  // namespace

WeightsFile::WeightsFile(void* data, size_t size, const Identity& identity, std::string path,
                         int descriptor)
    : TensorBuffer(data),
      size_(size),
      identity_(std::make_unique<const Identity>(identity)),
      path_(std::move(path)),
      descriptor_(descriptor) {
  if (!path_.empty()) packs_ = PackFolder::Of(path_, size_, identity.owner);
}

WeightsFile::~WeightsFile() {
  {
    std::lock_guard<ForkSafeMutex> lock(TheMapped().mutex);
    auto& files = TheMapped().files;
    files.erase(std::remove(files.begin(), files.end(), this), files.end());
  }
  if (size_ > 0) munmap(data(), size_);
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status WeightsFile::Open(const std::string& path, RefCountPtr<WeightsFile>* file) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Cannot("open", path);
  struct stat status;
  const int failed = fstat(descriptor, &status);
  absl::Status result = failed ? Cannot("read", path) : absl::OkStatus();
  if (result.ok()) {
    const Identity identity(status);
    std::lock_guard<ForkSafeMutex> lock(TheMapped().mutex);
    for (WeightsFile* other : TheMapped().files) {
      // One that nobody holds any more waits for this lock to go.
      if (*other->identity_ == identity && other->TryRef()) file->reset(other);
    }
    if (*file == nullptr) {
      const size_t size = status.st_size;
      void* const data =
          size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (data == MAP_FAILED) {
        result = Cannot("map", path);
      } else {
        const bool named = status.st_nlink > 0;
        char absolute[PATH_MAX];
        const char* const real = named ? realpath(path.c_str(), absolute) : nullptr;
        file->reset(new WeightsFile(data, size, identity, real == nullptr ? "" : real,
                                    named ? std::exchange(descriptor, -1) : -1));
        TheMapped().files.push_back(file->get());
      }
    }
  }
  if (descriptor >= 0) close(descriptor);
  return result;
}

absl::Status WeightsFile::Check() const {
  struct stat now;
  if (descriptor_ < 0 || (fstat(descriptor_, &now) == 0 && Identity(now) == *identity_)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("somebody has written into ", path_,
                   " while its weights are in use: load the model again, and write a new one to "
                   "another folder, or rename it into the place of the old one"));
}

absl::Status WeightsFile::CheckAt(const void* data) {
  const char* const at = static_cast<const char*>(data);
  std::lock_guard<ForkSafeMutex> lock(TheMapped().mutex);
  for (const WeightsFile* file : TheMapped().files) {
    const char* const first = file->base<char>();
    if (first <= at && at < first + file->size_) return file->Check();
  }
  return absl::OkStatus();
}

WeightsFile* WeightsFile::Of(const Tensor& tensor) {
  auto* const buffer =
      const_cast<tensorflow::TensorBuffer*>(tensorflow::DMAHelper::buffer(&tensor));
  return buffer == nullptr ? nullptr : dynamic_cast<WeightsFile*>(buffer->root_buffer());
}

absl::Status WeightsFile::Read(int64_t offset, tensorflow::DataType dtype,
                               const tensorflow::TensorShape& shape, Tensor* tensor) {
  const int64_t size = static_cast<int64_t>(size_), element = tensorflow::DataTypeSize(dtype);
  if (element == 0 || !tensorflow::DataTypeCanUseMemcpy(dtype)) {
    return Invalid("a file holds no tensor of ", tensorflow::DataTypeString(dtype));
  }
  if (offset < 0 || offset % kAlignment != 0) {
    return Invalid("offsets must be multiples of ", kAlignment, " bytes, got ", offset);
  }
  if (offset > size || shape.num_elements() > (size - offset) / element) {
    return Invalid("the file of weights has ", size, " bytes, and a tensor ", shape.DebugString(),
                   " at ", offset, " does not fit; is it complete?");
  }
  if (shape.num_elements() == 0) {
    *tensor = Tensor(dtype, shape);
    return absl::OkStatus();
  }
  const RefCountPtr<TensorBuffer> part(
      new Part(this, base<char>() + offset, shape.num_elements() * element));
  *tensor = Tensor(dtype, shape, part.get());
  return absl::OkStatus();
}

void WeightsFile::Drop(const void* data, int64_t bytes) const {
  constexpr uintptr_t kPage = 4096;
  // Whoever read what lies before has mapped so much around it, by one fault.
  constexpr uintptr_t kAround = 64 << 10;
  const uintptr_t first = reinterpret_cast<uintptr_t>(data) / kAround * kAround;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes + kPage - 1) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace bd
