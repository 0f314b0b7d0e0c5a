"""How an optimised function is called, fastest way first.

    eager_path    positional eager tensors: this library, past TensorFlow's dispatch
    one_op        eager tensors where that is not available: one op that runs the whole body
    function      everything else (tapes, tracing, keywords): TensorFlow's concrete function

`optimize` makes these callables from whatever holds a TensorFlow function.
"""

from .eager_path import unavailable as eager_path_unavailable
from .function import OptimizedFunction, OptimizedModel
from .optimize import optimize

__all__ = ["OptimizedFunction", "OptimizedModel", "eager_path_unavailable", "optimize"]
