"""TensorFlow's element-wise ops by name, for all that lets such ops be where they stand.

Which of them are steps of a chain of ours is said in cc/core/post_ops/post_op_step.h.
"""

# Of one tensor, whose type they keep.
UNARY = frozenset(
    (
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1 "
        "Floor Inv LeakyRelu Lgamma Log Log1p Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu "
        "Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh"
    ).split()
)
# Of two tensors, which are broadcast to each other and whose type they keep.
BINARY = frozenset(
    (
        "Add AddV2 Atan2 Div DivNoNan FloorDiv FloorMod Maximum Minimum Mod Mul MulNoNan Pow "
        "RealDiv SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlogy"
    ).split()
)
# The same, but for a result of truth values.
COMPARISONS = frozenset("Equal Greater GreaterEqual Less LessEqual NotEqual".split())
# Those that jump, so that a finer argument gives another result.
STEPS = frozenset(
    "Ceil Floor FloorDiv FloorMod Mod Rint Round Sign TruncateDiv TruncateMod".split()
)
