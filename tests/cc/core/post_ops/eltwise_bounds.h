// Largest errors of the eltwise entries against float64, on every instruction set
// and over all floats: the table of docs/post-ops.md.
#pragma once

namespace bd {

enum UlpUnit {
  kResult,  // ulp of the exact result
  kTerms,   // ulp of the largest of the result and what is added up for it: where
            // terms cancel, the result has fewer digits
};

struct EltwiseBound {
  const char* entry;
  double ulps;
  UlpUnit unit;
};

constexpr EltwiseBound kEltwiseBounds[] = {
    {"eltwise(relu)", 0, kResult},
    {"eltwise(relu,alpha=0.3)", 0.5, kResult},
    {"eltwise(leaky_relu,alpha=0.3)", 0.5, kResult},
    {"eltwise(relu6)", 0, kResult},
    {"eltwise(bounded_relu,alpha=2.5)", 0, kResult},
    {"eltwise(clip,alpha=-1,beta=2)", 0, kResult},
    {"eltwise(elu)", 1.1, kResult},
    {"eltwise(elu,alpha=0.3)", 1.8, kResult},
    {"eltwise(linear,alpha=0.3,beta=-0.7)", 1, kTerms},
    {"eltwise(swish)", 3.6, kResult},
    {"eltwise(swish,alpha=1.702)", 3.6, kResult},
    {"eltwise(hard_sigmoid)", 1, kTerms},
    {"eltwise(hard_swish)", 1.6, kTerms},
    {"eltwise(pow,beta=3)", 1.6, kResult},
    {"eltwise(pow,beta=-2.5)", 1.6, kResult},
    {"eltwise(pow,alpha=0.7,beta=0.5)", 2.5, kResult},
    {"eltwise(tanh)", 2.7, kResult},
    {"eltwise(square)", 0.5, kResult},
    {"eltwise(abs)", 0, kResult},
    {"eltwise(sqrt)", 0.5, kResult},
    {"eltwise(soft_relu)", 2.9, kResult},
    {"eltwise(logistic)", 2.4, kResult},
    {"eltwise(exp)", 1.1, kResult},
    {"eltwise(gelu_tanh)", 3.3, kResult},
    {"eltwise(gelu_erf)", 5.5, kTerms},
    {"eltwise(mish)", 4.5, kResult},
    {"eltwise(log)", 0.9, kResult},
    {"eltwise(round)", 0, kResult},
    {"eltwise(floor)", 0, kResult},
    {"eltwise(ceil)", 0, kResult},
    {"eltwise(sign)", 0, kResult},
    {"eltwise(reciprocal)", 0.5, kResult},
    {"eltwise(rsqrt)", 1.5, kResult},
    {"eltwise(softsign)", 1.5, kResult},
    {"eltwise(expm1)", 1.8, kResult},
    {"eltwise(log1p)", 2.7, kResult},
    {"eltwise(atan)", 3, kResult},
    {"eltwise(sin)", 2.3, kResult},
    {"eltwise(cos)", 2.4, kResult},
    {"eltwise(tanh,scale=3)", 5.9, kResult},
};

}  // namespace bd
