// Weights in a file, mapped read-only: processes share its pages, and those that nobody reads any
// more cost nothing.
#pragma once

#include <memory>
#include <string>

#include "cc/tensorflow/weights/pack_folder.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace bd {

// All tensors of a file hold it, and in a process it is mapped once, so that weights which two
// functions read lie in the same memory and are packed once.
//
// A tensor's memory may be taken for a result where its buffer and the root of that have one
// reference. Here the file is the root, and has two of each tensor.
class WeightsFile : public tensorflow::TensorBuffer {
 public:
  static constexpr int64_t kAlignment = 64;  // of tensors

  // The file as it is now; another one that is at `path` later is another mapping.
  static absl::Status Open(const std::string& path,
                           tensorflow::core::RefCountPtr<WeightsFile>* file);

  // The file in which a tensor lies, or null.
  static WeightsFile* Of(const tensorflow::Tensor& tensor);

  ~WeightsFile() override;

  // A tensor that begins `offset` bytes into the file; an error if the file has not all of it.
  absl::Status Read(int64_t offset, tensorflow::DataType dtype,
                    const tensorflow::TensorShape& shape, tensorflow::Tensor* tensor);

  // An error where somebody has written into the file, so that its tensors are no longer what they
  // were, or are gone.
  absl::Status Check() const;

  // Check of the file in which `data` lies, if there is one.
  static absl::Status CheckAt(const void* data);

  // Where packed forms of its tensors are kept, or null.
  PackFolder* packs() const { return packs_.get(); }

  // Nobody reads [data, data + bytes) soon: the pages stop being this process's.
  void Drop(const void* data, int64_t bytes) const;

  size_t size() const override { return size_; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(size_);
  }

 private:
  class Part;
  struct Identity;

  // `path` is empty and `descriptor` -1 where nobody can name the file.
  WeightsFile(void* data, size_t size, const Identity& identity, std::string path, int descriptor);

  const size_t size_;
  const std::unique_ptr<const Identity> identity_;
  const std::string path_;
  const int descriptor_;
  std::unique_ptr<PackFolder> packs_;
};

}  // namespace bd
