"""A tf.function without a signature: rewritten at the first call of each, as TensorFlow traces."""

import os
import threading
from collections.abc import Callable, Hashable

import numpy as np
import tensorflow as tf

from ..rewriter import Report
from ..tensorflow_private import EagerTensor, unconverted
from .function import OptimizedFunction


@unconverted
class PolymorphicFunction:
    """One OptimizedFunction for each signature that calls have had.

    Attributes:
        functions: the OptimizedFunctions so far, in the order of their first calls.
        report: of the signature that was called first; empty before.
    """

    def __init__(self, function, optimize: Callable):
        """Wraps a function.

        Args:
            function: a tf.function; it is kept, since new signatures are traced from it.
            optimize: ConcreteFunction -> OptimizedFunction.
        """
        self._function, self._optimize = function, optimize
        self._of_key: dict[Hashable, OptimizedFunction] = {}
        self._of_trace: dict[int, tuple] = {}
        # Tracing may call this object again in the same thread: a function that calls itself.
        self._lock = threading.RLock()

    @property
    def functions(self) -> list[OptimizedFunction]:
        return [fast for _, fast in self._of_trace.values()]

    @property
    def report(self) -> Report:
        if self._of_trace:
            return self.functions[0].report
        return Report(notes=["converted at the first call of each signature; none has come yet"])

    def __call__(self, *args, **kwargs):
        try:
            key = (_key(args), _key(kwargs)) if kwargs else _key(args)
        except TypeError:  # Only TensorFlow knows whether two such arguments are alike.
            key = None
        fast = self._of_key.get(key)
        if fast is None:
            fast = self._make(key, args, kwargs)
        return fast(*args, **kwargs)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the one signature that was called as a SavedModel's "serving_default".

        Raises:
            ValueError: no call yet, or calls of several signatures.
        """
        if len(self._of_trace) != 1:
            raise ValueError(
                f"the function has been called with {len(self._of_trace)} signatures and a "
                "SavedModel's signature is one: give optimize(..., input_signature=[...])"
            )
        self.functions[0].save(folder)

    def _make(self, key, args, kwargs) -> OptimizedFunction:
        with self._lock:
            if key in self._of_key:
                return self._of_key[key]
            args, kwargs = tf.nest.map_structure(_spec, (args, kwargs))
            with tf.init_scope():  # weights are read now, even where the call is being traced
                concrete = self._function.get_concrete_function(*args, **kwargs)
                if id(concrete) not in self._of_trace:
                    self._of_trace[id(concrete)] = (concrete, self._optimize(concrete))
            fast = self._of_trace[id(concrete)][1]
            if key is not None:
                self._of_key[key] = fast
            return fast


def _key(value) -> Hashable:
    """Equal for arguments of one signature.

    Raises:
        TypeError: an argument that is neither a tensor, an array, a plain Python value nor a nest.
    """
    if isinstance(value, (EagerTensor, np.ndarray)):
        return (value.dtype, value.shape if type(value) is np.ndarray else value._shape_tuple())
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_key, value))
    if isinstance(value, dict):
        return (dict, *((key, _key(inner)) for key, inner in value.items()))
    if isinstance(value, tf.Tensor):
        shape = value.shape
        return (value.dtype, None if shape.rank is None else tuple(shape.as_list()))
    if value is None or isinstance(value, (bool, int, float, str)):
        return (type(value), value)
    raise TypeError(type(value).__name__)


def _spec(value):
    """A TensorSpec for what TensorFlow makes a tensor of; Python values stay what they are."""
    if isinstance(value, tf.Tensor):
        return tf.TensorSpec(value.shape, value.dtype)
    if isinstance(value, np.ndarray):
        return tf.TensorSpec(value.shape, value.dtype)
    return value
