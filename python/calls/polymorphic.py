"""A function without a signature: rewritten at the first call of each, as TensorFlow traces."""

import os
import threading
from collections.abc import Callable, Hashable

import numpy as np
import tensorflow as tf

from ..rewriter import Report
from ..tensorflow_private import EagerTensor, unconverted
from .function import OptimizedFunction

# Kinds of arguments whose function is known; a server may meet any number of shapes.
_MOST_KEYS = 256
_NONE_YET = "converted at the first call of each signature; none has come yet"


@unconverted
class PolymorphicFunction:
    """One OptimizedFunction for each signature that calls have had.

    Attributes:
        functions: the OptimizedFunctions so far, in the order of their first calls.
        report: of the signature that came first; empty before.
        remark: why it has no signature of its own, for the reports; or None.
        main: the function that is saved whatever calls there were; or None.
        trackables: the variables and tables that the functions so far capture.
    """

    def __init__(self, make: Callable):
        """Wraps what makes functions.

        Args:
            make: (args, kwargs) -> OptimizedFunction, where tensors and arrays are TensorSpecs;
                the same one for arguments that one function takes.
        """
        self._make = make
        self.remark: str | None = None
        self.main: OptimizedFunction | None = None
        self._of_key: dict[Hashable, OptimizedFunction] = {}
        self.functions: list[OptimizedFunction] = []
        # Tracing may call this object again in the same thread: a function that calls itself.
        self._lock = threading.RLock()

    @property
    def report(self) -> Report:
        if self.functions:
            return self.functions[0].report
        return Report(notes=[self.remark or _NONE_YET])

    @property
    def concrete(self):
        """The ConcreteFunction of the main function, or of the one signature that was called."""
        return self.only().concrete

    @property
    def trackables(self) -> list:
        held = {id(t): t for function in self.functions for t in function.trackables}
        return list(held.values())

    def __call__(self, *args, **kwargs):
        try:
            key = (_key(args), _key(kwargs)) if kwargs else _key(args)
        except TypeError:  # Only TensorFlow knows whether two such arguments are alike.
            key = None
        fast = self._of_key.get(key)
        if fast is None:
            fast = self._find(key, args, kwargs)
        return fast(*args, **kwargs)

    def add(self, args: tuple, kwargs: dict) -> OptimizedFunction:
        """The function for arguments of which tensors are TensorSpecs, rewritten if need be."""
        with self._lock, tf.init_scope():  # weights are read now, even while a call is traced
            fast = self._make(args, kwargs)
            if not any(fast is one for one in self.functions):
                self.functions.append(fast)
                if self.remark:
                    fast.report.notes.insert(0, self.remark)
            return fast

    def follow(self) -> list:
        """What calls run from now on, in the order of `functions`; live weights are followed."""
        return [function.follow() for function in self.functions]

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the one signature that was called as a SavedModel's "serving_default".

        Raises:
            ValueError: no call yet, or calls of several signatures.
        """
        self.only().save(folder)

    def only(self) -> OptimizedFunction:
        """The main function, or that of the one signature that was called.

        Raises:
            ValueError: no call yet, or calls of several signatures.
        """
        if self.main is not None:
            return self.main
        if len(self.functions) != 1:
            raise ValueError(
                f"the function has been called with {len(self.functions)} signatures and a "
                "SavedModel's signature is one: give optimize(..., input_signature=[...])"
                + (", or example=[...] of known sizes" if self.remark else "")
            )
        return self.functions[0]

    def _find(self, key, args, kwargs) -> OptimizedFunction:
        with self._lock:
            if key in self._of_key:
                return self._of_key[key]
            fast = self.add(*tf.nest.map_structure(_spec, (args, kwargs)))
            if key is not None:
                if len(self._of_key) >= _MOST_KEYS:
                    self._of_key.clear()
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
