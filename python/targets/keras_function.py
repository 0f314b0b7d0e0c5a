"""The rewritten functions of a Keras model, and how calls of it find them.

Keras is asked once for each form of a call where arguments go; later calls of that form do
without Keras.
"""

import threading
import uuid
import weakref
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from ..tensorflow_private import EagerTensor, context, unconverted
from .inputs import (
    Plan,
    casts,
    form_of,
    form_of_call,
    has_no_numbers,
    keep,
    mapped,
    places,
    probes,
)
from .keras_inputs import with_names
from .result import OptimizedFunction

_NO_WEIGHTS_YET = (
    "this optimised model was made of a configuration without weights: load a .keras file, which "
    "has both, or the weights of the model around it with load_weights(file)"
)
NO_WEIGHTS = (
    "an optimised model has no weights to load, set or save: do that with the original, then call "
    'tf_blockdnn.optimize again, or once with weights="live"'
)

# Of the results in this process: what stands for one in a configuration -> the functions.
FUNCTIONS: weakref.WeakValueDictionary[str, "KerasFunction"] = weakref.WeakValueDictionary()


@unconverted
class KerasFunction(OptimizedFunction):
    """The rewritten functions of a Keras model, as `fast.optimized` has them.

    Attributes:
        original: the model, where methods may want what it holds; or None.
        of_function: makes the optimised function of a tf.function.
        traced: the functions that Keras's own of each step call.
        name_results: nested results -> their names in a signature, where Keras writes others there
            than TensorFlow; or None.
        runs: (dtype, shape) of a call with one eager tensor -> the function that runs it.
        shapes: of the inputs and outputs of a functional model.
        key: what stands for it in a configuration.
    """

    def __init__(self, make: Callable, keras_call: Callable, of_function: Callable):
        super().__init__(make)
        self.inference, self.original, self.of_function = make, None, of_function
        self.shapes: list | None = None
        self.name_results: Callable | None = None
        self.traced: dict[str, list] = {}
        self.runs: dict[tuple, Callable] = {}
        self._keras_call, self._keras_plans = keras_call, {}
        self._seen = threading.local()
        self._start: Callable | None = None
        self.key = uuid.uuid4().hex
        FUNCTIONS[self.key] = self

    def wait(self, start: Callable, stand_in: "KerasFunction | None") -> None:
        """Has the functions of a stand-in, or none, until weights are loaded.

        Args:
            start: converts those for plain calls.
        """
        self._start, self.remark = start, _NO_WEIGHTS_YET

        def refuse(args, kwargs):
            raise ValueError(_NO_WEIGHTS_YET)

        self._make = refuse if stand_in is None else stand_in.add
        if stand_in is not None:
            self.remark, self.main = stand_in.remark, stand_in.main

    def load(self, values: list) -> None:
        """Computes with these weights from now on.

        Raises:
            ValueError: they do not fit, or are others than those of an original that is the user's.
        """
        if not values:
            return
        if self._start is None:
            now = self.inference.values()
            if len(values) != len(now) or not all(map(np.array_equal, values, now)):
                raise ValueError(NO_WEIGHTS)
            return
        weights = self.inference.original.weights
        for weight, value in zip(weights, values, strict=True):
            weight.assign(value)
        self.calls, self.main, self.remark, self._make = [], None, None, self.inference
        for learnt in (self._plans, self._keras_plans, self.runs, self.traced):
            learnt.clear()
        self.inference.forget()
        self._start()

    @unconverted
    def run(self, *args, **kwargs):
        """What Keras calls in the place of the original's layers."""
        call, flat = self.bound(args, kwargs)
        look = getattr(self._seen, "look", None)
        if look is not None:
            look(call, flat)
        return call.run(flat)

    @property
    def served(self):
        """The rewritten ConcreteFunction, whose results have Keras's names."""
        return with_names(self.concrete, self.name_results)

    def call(self, model, args: tuple, kwargs: dict):
        """A call of the model, past Keras where it is known what Keras makes of the arguments."""
        form = form_of_call(args, kwargs) if context.executing_eagerly() else None
        if form is None:
            args, kwargs = mapped(_value_of, (args, kwargs))
            return self._keras_call(model, *args, **kwargs)
        plan = self._keras_plans.get(form)
        if plan is None:
            return self._ask_keras(model, form, args, kwargs)
        flat = plan.flat(args, kwargs)
        return self._keras_call(model, *args, **kwargs) if flat is None else plan.call.run(flat)

    def _ask_keras(self, model, form, args: tuple, kwargs: dict):
        """Calls Keras with a distinct tensor for each leaf, which shows where each arrives."""
        seen, leaves = [], None
        self._seen.look = lambda *call_and_flat: seen.append(call_and_flat)
        try:
            *probed, leaves = probes(args, kwargs)
            results = self._keras_call(model, *probed[0], **probed[1])
        except Exception:
            if not has_no_numbers(args, kwargs):
                raise
            leaves = None
        finally:
            self._seen.look = None
        plan = Plan()
        if leaves is None:
            results = self._keras_call(model, *args, **kwargs)
        elif len(seen) == 1:  # and not another model of the same functions inside of it
            call, flat = seen[0]
            known = places(flat, leaves)
            if known is None:
                known = self._ask_again(model, args, kwargs, flat, leaves)
            plan = Plan(call, known)
        keep(self._keras_plans, form, plan)
        if plan.places == [0] and len(args) == 1 and type(args[0]) is EagerTensor and not kwargs:
            keep(self.runs, form_of(args[0]), plan.call.run)
        return results

    def _ask_again(self, model, args, kwargs, flat, leaves) -> list | None:
        """Where leaves go that Keras casts: their numbers tell, with which nothing runs."""
        *probed, _ = probes(args, kwargs, numbered=True)
        seen = []

        def stop(call, numbered):
            seen.append(numbered)
            raise InterruptedError

        self._seen.look = stop
        try:
            self._keras_call(model, *probed[0], **probed[1])
        except Exception:  # Keras may mind the numbers, too.
            return casts(flat, seen[0], leaves) if seen else None
        finally:
            self._seen.look = None


def _value_of(value):
    """The value of a variable at this call; of all else itself."""
    return tf.convert_to_tensor(value) if isinstance(value, tf.Variable) else value
