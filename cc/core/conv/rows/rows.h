// A 1x1 convolution of few pixels as a small-M product on plain weights (cc/core/inner_product).
#ifndef CC_CORE_CONV_ROWS_ROWS_H_
#define CC_CORE_CONV_ROWS_ROWS_H_

#include <string>

#include "cc/core/conv/common/conv_run.h"

namespace bd {

struct RowsPlan {
  ScratchPiece<float> row;  // a task's columns of dst, for each thread
};

// The functions of the table's row.
std::string RowsApplies(const Algorithm& self, const ConvDesc& desc, Isa isa);
double RowsCost(const Algorithm& self, const ConvDesc& desc, Isa isa, int threads);
void PlanRows(const Algorithm& self, ConvPlan* plan);
// A note for weights that stay: 1 where all are finite, so that those that meet only zeros may be
// skipped, else 0.
void PackRows(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
              const float* src);
void RunRows(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_ROWS_ROWS_H_
