// A 1x1 convolution of plain tensors as a product of matrices (cc/core/gemm): a row of A is a
// pixel.
#ifndef CC_CORE_CONV_GEMM_CONV_GEMM_H_
#define CC_CORE_CONV_GEMM_CONV_GEMM_H_

#include <string>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/gemm/gemm.h"

namespace bd {

struct ConvGemmPlan {
  GemmPlan gemm;
  ScratchPiece<uint8_t> rows;  // what the product needs for them
};

// The functions of the table's row.
std::string GemmApplies(const Algorithm& self, const ConvDesc& desc, Isa isa);
double GemmCost(const Algorithm& self, const ConvDesc& desc, Isa isa, int threads);
void PlanGemm(const Algorithm& self, ConvPlan* plan);
void PackGemmWeights(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                     const float* src);
void RunConvGemm(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_GEMM_CONV_GEMM_H_
