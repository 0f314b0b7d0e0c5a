"""TensorFlow's ops by name, as far as what they do lets them stand where they stand.

Which element-wise ones are steps of a chain of ours is said in cc/core/post_ops/post_op_step.h.
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
# What hands on what it reads; the elements in their order, in the same memory; in any order.
IDENTITIES = frozenset({"Identity", "StopGradient"})
RESHAPES = frozenset({"ExpandDims", "Reshape", "Squeeze"})
KEEP_MEMORY = IDENTITIES | RESHAPES
VIEWS = KEEP_MEMORY | {"Transpose"}
# Sums of products.
BATCH_MATMULS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
PRODUCTS = BATCH_MATMULS | {"Einsum", "MatMul"}
VOLUMES = frozenset({"Conv3D", "Conv3DBackpropInputV2"})
CONVOLUTIONS = VOLUMES | {"Conv2D", "Conv2DBackpropInput", "DepthwiseConv2dNative"}
# What adds up many numbers.
SUMS = PRODUCTS.union(CONVOLUTIONS, "AvgPool AvgPool3D Mean Prod Softmax Sum".split())
# Without one of these nothing in a loop, condition or call is converted: all else follows them.
BEGINNINGS = PRODUCTS | CONVOLUTIONS | {"Mean", "XlaDynamicUpdateSlice"}
BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
LOOPS = frozenset({"StatelessWhile", "While"})
# What is read of a variable without making it assignable.
READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"})
# Of TensorFlow 1's loops and conditions, whose dataflow is no function's: a control edge there says
# where a node belongs.
FRAMES = frozenset({"Enter", "Exit", "Merge", "NextIteration", "Switch"})
