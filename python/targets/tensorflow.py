"""TensorFlow's own kinds of functions as targets."""

import functools
import types

import tensorflow as tf

from ..tensorflow_private import binding_of, concrete_function, def_function
from .result import OptimizedFunction
from .target import Target, time_trace


class Concrete(Target):
    """A function with one signature."""

    TYPES = (concrete_function.ConcreteFunction,)
    KIND = "a ConcreteFunction"

    def result(self) -> OptimizedFunction:
        return OptimizedFunction(self.convert(self.target, bound={"takes_names": True}))


class Function(Target):
    """A tf.function; without a signature it is rewritten at the first call of each."""

    TYPES = (def_function.Function, types.FunctionType)
    TAKES = frozenset({"input_signature"})
    KIND = "a tf.function"

    @property
    def function(self):
        is_plain = isinstance(self.target, types.FunctionType)
        return tf.function(self.target) if is_plain else self.target

    def result(self) -> OptimizedFunction:
        function = self.function
        result = self._result(function)
        signature = self.settings.input_signature or function.input_signature
        result.input_signature = None if signature is None else tuple(signature)
        functools.update_wrapper(result, function.python_function, updated=())
        del result.__wrapped__  # What the original holds may go.
        return result

    def _result(self, function) -> OptimizedFunction:
        signature = self.settings.input_signature
        bound = binding_of(function)
        if signature is not None or function.input_signature is not None:
            specs = tuple(signature or ())
            traced = time_trace(function.get_concrete_function, *specs)
            return OptimizedFunction(self.convert(*traced, bound=bound))
        self.hold(self.target, function)
        calls: dict = {}  # As many as the function has been traced for, and holds, too.

        def make(args, kwargs):
            concrete, seconds = time_trace(function.get_concrete_function, *args, **kwargs)
            if concrete not in calls:
                calls[concrete] = self.convert(concrete, seconds, bound=bound)
            return calls[concrete]

        return OptimizedFunction(make)


class Module(Function):
    """A tf.Module that can be called."""

    TYPES = (tf.Module,)
    KIND = "a tf.Module"

    @classmethod
    def takes(cls, target) -> bool:
        return super().takes(target) and callable(target)

    @property
    def function(self):
        """The tf.function that calling the module runs."""
        function = type(self.target).__call__
        is_function = isinstance(function, def_function.Function)
        return self.target.__call__ if is_function else tf.function(self.target.__call__)
