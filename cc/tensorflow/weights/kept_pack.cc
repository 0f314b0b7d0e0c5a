#include "cc/tensorflow/weights/kept_pack.h"

#include <utility>

#include "cc/base/pack_count.h"

namespace bd {
namespace {

bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].data() != b[i].data() || a[i].shape() != b[i].shape()) return false;
  }
  return true;
}

// All packs of the process that some kernel holds.
class Registry {
 public:
  static Registry& Get() {
    static Registry* registry = new Registry;  // outlives every kernel
    return *registry;
  }

  // The lock is held while packing, so that no matrix is packed twice.
  Status FindOrPack(const std::vector<Tensor>& sources, const std::string& form, int64_t floats,
                    FunctionRef<void(float*)> pack, std::shared_ptr<const KeptPack>* found) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < packs_.size();) {
      const std::shared_ptr<const KeptPack> kept = packs_[i].lock();
      if (kept == nullptr) {
        std::swap(packs_[i], packs_.back());
        packs_.pop_back();
        continue;
      }
      if (kept->form == form && Same(kept->sources, sources)) {
        *found = kept;
        return absl::OkStatus();
      }
      ++i;
    }
    auto made = std::make_shared<KeptPack>();
    made->sources = sources;
    made->form = form;
    made->memory = AlignedBuffer(floats * sizeof(float));
    if (made->memory.data() == nullptr && floats > 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", floats, " packed weights"));
    }
    CountPack();
    pack(made->memory.As<float>());
    packs_.push_back(made);
    *found = std::move(made);
    return absl::OkStatus();
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const KeptPack>> packs_;
};

}  // namespace

Status PackKeeper::Take(OpKernelContext* ctx, const std::vector<Tensor>& sources,
                        const std::string& form, int64_t floats, KeepPack keep,
                        FunctionRef<void(float*)> pack, PackLease* lease) {
  if (keep != KeepPack::kNever) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (kept_ != nullptr && (kept_->form != form || !Same(kept_->sources, sources))) {
      kept_ = nullptr;
    }
    if (kept_ == nullptr) {
      if (keep == KeepPack::kAlways || Same(last_, sources)) {
        last_.clear();
        TF_RETURN_IF_ERROR(Registry::Get().FindOrPack(sources, form, floats, pack, &kept_));
      } else {
        last_ = sources;
      }
    }
    if (kept_ != nullptr) {
      lease->kept = kept_;
      lease->data = kept_->memory.As<float>();
      return absl::OkStatus();
    }
  }
  TF_RETURN_IF_ERROR(
      ctx->allocate_temp(tensorflow::DT_FLOAT, TensorShape({floats}), &lease->packed_now));
  float* memory = static_cast<float*>(lease->packed_now.data());
  PreferHugePages(memory, lease->packed_now.TotalBytes());
  CountPack();
  pack(memory);
  lease->data = memory;
  return absl::OkStatus();
}

}  // namespace bd
