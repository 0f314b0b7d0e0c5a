#include "tests/cc/core/post_ops/post_ops_kernel.h"

#include "cc/core/post_ops/post_ops_inl.h"

namespace bd::BD_ISA {
namespace {

constexpr PostOpsKernels kKernels = {ApplyPostOps, ApplyPostOpsPlain};

}  // namespace

const PostOpsKernels& GetPostOpsKernels() { return kKernels; }

}  // namespace bd::BD_ISA
