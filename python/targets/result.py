"""What `optimize` returns: an optimised function, or several under their names."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from .. import rewriter
from ..tensorflow_private import context, unconverted
from .call import Call
from .gradient import run_unwatched
from .inputs import Plan, form_of_call, keep, mapped, places, probes
from .save import save_functions

_NONE_YET = "converted at the first call of each signature; none has come yet"
_DEFAULT = "serving_default"
_NO_PICKLE = (
    "an optimised function cannot be pickled, since it belongs to this process: write a SavedModel "
    "by its save(folder), and pickle what tf_blockdnn.load makes of it"
)


class Shared:
    """What is a function to Python's `copy`: one that is copied is itself.

    Nothing of it changes: its weights are a snapshot, or those of its original. One of a path is
    pickled as that, and optimised again.
    """

    again: tuple | None = None  # What makes it again: a function and its arguments.

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        if self.again is None:
            raise TypeError(_NO_PICKLE)
        return self.again


@unconverted
class OptimizedFunction(Shared):
    """A rewritten function: called like the original, same structure and dtypes.

    One without a signature is rewritten at the first call of each. Eager calls skip TensorFlow's
    Python layers: by position or by keyword, with tensors, arrays, dicts and nests.

    Attributes:
        report: what was converted, what was declined and why; of the signature that came first, and
            empty before.
        concrete: the rewritten ConcreteFunction; of the one signature that was called.
        trackables: the variables and tables that it captures.
        calls: the rewritten functions so far, one for each signature, in the order of first calls.
        main: the one that is saved whatever calls there were; or None.
        remark: why it has no signature of its own, for the reports; or None.
        input_signature: the TensorSpecs of a tf.function that has them; else None.

    Args:
        make: a Call, or (args, kwargs) -> Call, where tensors and arrays are TensorSpecs; the same
            one for arguments that one function takes.
        known: (args, kwargs) of the signatures that a SavedModel gets, called or not.
        signature: the Python function's, with its defaults, where a SavedModel needs it.

    Raises:
        TypeError: when it is called with other arguments than the original takes.

    Example:
        >>> @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 3), tf.float32)])
        ... def network(image):
        ...     return tf.nn.relu(tf.nn.conv2d(image, tf.ones((3, 3, 3, 4)), 1, "SAME"))
        >>> fast = bd.optimize(network)
        >>> fast(tf.ones((2, 8, 8, 3))).shape
        TensorShape([2, 8, 8, 4])
        >>> fast.save("network_fast")
    """

    def __init__(self, make: Callable | Call, known: Sequence[tuple] = (), signature=None):
        self._known, self.signature = known, signature
        is_one = not callable(make)
        self.calls, self.main = [make] if is_one else [], make if is_one else None
        self._make = (lambda args, kwargs: self.main) if is_one else make
        self._run, self._count = (make.run, make.count) if is_one else (None, -1)
        self.remark: str | None = None
        self.input_signature: tuple | None = None
        self._plans: dict[Hashable, Plan] = {}
        # Tracing may call this object again in the same thread: a function that calls itself.
        self._lock, self._adds_in = threading.RLock(), None

    def __call__(self, *args, **kwargs):
        if len(args) == self._count and not kwargs:
            return self._run(args)
        call, flat = self.bound(args, kwargs)
        return call.run(flat)

    def bound(self, args: tuple, kwargs: dict) -> tuple:
        """The Call for those arguments, and its flat inputs."""
        form = form_of_call(args, kwargs)
        plan = self._plans.get(form) or self._learn(form, args, kwargs)
        flat = plan.flat(args, kwargs)
        return plan.call, plan.call.bind(args, kwargs) if flat is None else flat

    def __repr__(self) -> str:
        report = self.report
        return f"<optimized function: {report.summary().partition(chr(10))[0]}>"

    @property
    def report(self) -> rewriter.Report:
        if self.calls:
            return self.calls[0].report
        return rewriter.Report(notes=[self.remark or _NONE_YET])

    @property
    def concrete(self):
        return self.only().concrete

    @property
    def served(self):
        """The ConcreteFunction that a SavedModel has as its signature."""
        return self.concrete

    @property
    def trackables(self) -> list:
        held = {id(t): t for call in self.calls for t in call.trackables}
        return list(held.values())

    def add(self, args: tuple, kwargs: dict) -> Call:
        """The function for arguments of which tensors are TensorSpecs, rewritten if need be."""
        if self._adds_in == threading.get_ident():
            return self._add(args, kwargs)
        return run_unwatched(self._add, args, kwargs)

    def _add(self, args: tuple, kwargs: dict) -> Call:
        with self._lock, tf.init_scope():  # weights are read now, even while a call is traced
            before, self._adds_in = self._adds_in, threading.get_ident()
            try:
                call = self._make(args, kwargs)
            finally:
                self._adds_in = before
            if not any(call is known for known in self.calls):
                self.calls.append(call)
                if self.remark:
                    call.report.notes.insert(0, self.remark)
            return call

    def get_concrete_function(self, *args, **kwargs):
        """The rewritten ConcreteFunction for TensorSpecs, or tensors, in the place of arguments.

        A function of one signature needs none. With live weights it has those of now.

        Raises:
            ValueError: no arguments, and calls of several signatures.
        """
        if not (args or kwargs) and (self.calls or self.main):
            return self.concrete
        return self.add(*mapped(_spec, (args, kwargs))).concrete

    def experimental_get_tracing_count(self) -> int:
        """How many functions there are so far, each of a signature."""
        return len(self.calls)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures so far as text, as a tf.function shows them."""
        texts = (call.concrete.pretty_printed_signature(verbose) for call in self.calls)
        return ("\n\n" if verbose else "\n").join(texts)

    def follow(self) -> list:
        """What calls run from now on, in the order of `calls`; live weights are followed."""
        return [call.follow() for call in self.calls]

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel whose signature is named "serving_default".

        Raises:
            ValueError: no call yet, or calls of several signatures.
        """
        save_functions({_DEFAULT: self}, folder)

    def all(self) -> list[Call]:
        """The rewritten functions of an endpoint of a SavedModel."""
        known = {id(call): call for call in (self.add(*specs) for specs in self._known)}
        return list(known.values()) or self.calls

    def only(self) -> Call:
        """The main function, or that of the one signature that was called.

        Raises:
            ValueError: no call yet, or calls of several signatures.
        """
        if self.main is not None:
            return self.main
        if len(self.calls) != 1:
            raise ValueError(
                f"the function has been called with {len(self.calls)} signatures and a "
                "SavedModel's signature is one: give optimize(..., input_signature=[...])"
                + (", or example=[...] of known sizes" if self.remark else "")
            )
        return self.calls[0]

    def _learn(self, form, args: tuple, kwargs: dict) -> Plan:
        """The plan of calls of that form; TensorFlow is asked once how it binds them."""
        call = self.add(*mapped(_spec, (args, kwargs)))
        if form is None or not context.executing_eagerly():
            return Plan(call)
        where, is_flat = None, False
        with contextlib.suppress(TypeError, ValueError):  # An array is cast where a tensor is not.
            *probed, leaves = probes(args, kwargs)
            where = places(call.bind(*probed), leaves)
            are_leaves = len(leaves) == len(args) and all(map(operator.is_, leaves, probed[0]))
            is_flat = are_leaves and not kwargs and where == list(range(len(args)))
        plan = Plan(call, where, is_flat)
        with self._lock:
            keep(self._plans, form, plan)
        return plan


@unconverted
class OptimizedModel(Shared):
    """The rewritten functions of a SavedModel under their names; calls go to the default signature.

    Its endpoints (`fast.encode`, `fast.serve`) are attributes, each an OptimizedFunction that is
    converted when it is first called. What else the SavedModel's object has as attributes
    (variables, tables, assets, parts and lists of these) is there, too, as tf.saved_model.load
    gives it: functions that were converted keep their snapshot when such a variable is assigned,
    and `save` writes functions alone.

    Attributes:
        signatures: name -> OptimizedFunction.
        report: the default signature's report; the others are in their functions.

    Args:
        signatures: what the attribute becomes; "serving_default", or else the first, is called.
        names: those of the endpoints and of other attributes.
        endpoints: () -> name -> OptimizedFunction, or what the attribute is; asked once, where one
            is wanted.
        resources: tables, assets and initialisers that are saved with it.

    Raises:
        AttributeError: no attribute of that name.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> model.export("two_signatures", verbose=False)
        >>> fast = bd.optimize("two_signatures")
        >>> sorted(fast.signatures)
        ['serve', 'serving_default']
    """

    def __init__(
        self,
        signatures: Mapping[str, OptimizedFunction],
        names: Collection[str],
        endpoints: Callable,
        resources: Iterable,
    ):
        self.signatures = dict(signatures)
        name = _DEFAULT if _DEFAULT in self.signatures else next(iter(self.signatures))
        self._default = self.signatures[name]
        self._names, self._endpoints = names, functools.cache(endpoints)
        self._resources = list(resources)

    def __getattr__(self, name: str):
        names = self.__dict__.get("_names", ())
        if name in names:
            return self._endpoints()[name]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}; the SavedModel has "
            f"{', '.join(sorted(names)) or 'none'}"
        )

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {kind!r}" for name, kind in sorted(self.signatures.items()))
        return f"<optimized SavedModel: {kinds}>"

    @property
    def report(self) -> rewriter.Report:
        return self._default.report

    @property
    def concrete(self):
        """The rewritten ConcreteFunction of the default signature."""
        return self._default.concrete

    def __call__(self, *args, **kwargs):
        return self._default(*args, **kwargs)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel with the same signatures and endpoints."""
        endpoints = self._endpoints().items()
        functions = {name: f for name, f in endpoints if isinstance(f, OptimizedFunction)}
        save_functions(self.signatures, folder, functions, self._resources)


def _spec(value):
    """A TensorSpec for what TensorFlow makes a tensor of; Python values stay what they are."""
    if isinstance(value, (tf.Tensor, np.ndarray)):
        return tf.TensorSpec(value.shape, value.dtype)
    return value
