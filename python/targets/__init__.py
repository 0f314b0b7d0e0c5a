"""The front door: how targets come in, and how results are called.

    optimizing    what it is asked for: the first kind of target that takes it
    tensorflow    tf.functions, ConcreteFunctions, modules
    keras         models of Keras 3 and 2: of what (keras_inputs), how they are called
                  (keras_function), what they become (keras_result)
    saved_model   loaded SavedModels
    files         paths, which become one of these, and saved results, called as they are;
                  keras_files, what Keras reads

A target's functions are rewritten to Calls (`call`, `live`: with weights that follow), of which
results consist (`result`). What a caller gives becomes flat inputs (`inputs`), and a call takes the
first of these ways that it can; `bd.info()` says whether the first is there:

    eager         eager tensors: this library, past TensorFlow's dispatch
    gradient      tapes, and inside other functions: TensorFlow's concrete function and gradient
"""

from typing import TYPE_CHECKING

from .. import on_demand

if TYPE_CHECKING:
    from .eager import why_unavailable
    from .files import load
    from .keras_files import load_signatures
    from .optimizing import optimize
    from .result import OptimizedFunction, OptimizedModel
    from .saved_model import SavedModel, sizes
    from .target import Settings, close_sizes, convert

__getattr__ = on_demand(
    __name__,
    {
        ".eager": "why_unavailable",
        ".files": "load",
        ".keras_files": "load_signatures",
        ".optimizing": "optimize",
        ".result": "OptimizedFunction OptimizedModel",
        ".saved_model": "SavedModel sizes",
        ".target": "Settings close_sizes convert",
    },
)
