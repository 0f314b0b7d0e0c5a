"""How an optimised function is called.

    optimize      whatever holds a TensorFlow function in, one of these out:
    function      one signature; the others consist of these
    polymorphic   a tf.function that is converted at the first call of each signature
    signatures    a SavedModel's signatures
    keras_model   a keras.Model

A call takes the first of these ways that it can, and `bd.info()` says whether the first is there:

    eager_path    eager tensors: this library, past TensorFlow's dispatch
    gradient      tapes, and inside other functions: TensorFlow's concrete function and gradient
"""

from .eager_path import unavailable as eager_path_unavailable
from .function import OptimizedFunction
from .keras_file import load_model as load_keras_file
from .keras_function import CANNOT_TRACE, has_open_sizes, of_any_batch, sized
from .keras_input import input_specs as keras_input_specs
from .keras_input import trace as trace_keras_model
from .optimize import load, optimize
from .polymorphic import PolymorphicFunction
from .signatures import OptimizedModel, closed, sizes
