"""What a target is to `optimize`: a kind of thing with functions in, which becomes a result."""

import functools
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from .. import rewriter
from ..errors import UserError
from ..native import without_collection
from ..options import Options
from .call import Call
from .live import LiveCall


def _say_nothing(words: str) -> None:
    """Where nobody wants to hear of steps; a function that pickle takes."""


class Settings(NamedTuple):
    """What a caller says of a target, as `optimize` and `optimize_saved_model` take it.

    Attributes:
        takes_example: whether the target has the sizes of `example`, which others left open.
        signatures: those to optimise; all that it has where None.
    """

    options: Options = Options()
    input_signature: Sequence | None = None
    custom_objects: Mapping[str, object] | None = None
    calibration: object = None
    example: object = None
    takes_example: bool = False
    signatures: Collection[str] | None = None
    on_step: Callable[[str], None] = _say_nothing
    on_batch: Callable[[int, int | None], None] | None = None


class Target(ABC):
    """One kind of thing that holds TensorFlow functions.

    Attributes:
        TYPES: those of the things.
        TAKES: which of `input_signature` and `custom_objects` mean something to it.
        KIND: what a message calls it.
    """

    TYPES: tuple[type, ...] = ()
    TAKES: frozenset[str] = frozenset()
    KIND = ""

    def __init__(self, target, settings: Settings):
        if settings.options.precision is not None:  # Each function reads all of it.
            kept = rewriter.keep_batches(settings.calibration)
            settings = settings._replace(calibration=kept)
        self.target, self.settings = target, settings
        for name in ("input_signature", "custom_objects"):
            if getattr(settings, name) and name not in self.TAKES:
                raise UserError(f"{name} means nothing to {self.KIND}: leave it out")

    @functools.cached_property
    def bundles(self):
        """What the functions share weights by."""
        return rewriter.Bundles()

    @classmethod
    def takes(cls, target) -> bool:
        """Whether this is for it; imports nothing."""
        return isinstance(target, cls.TYPES)

    @abstractmethod
    def result(self):
        """What stands for the target from now on: it is called and saved as that is."""

    def hold(self, *roots) -> None:
        """Keeps the weights of now for functions that are converted at a later call."""
        if not self.settings.options.is_live:
            self.bundles.hold(roots)

    def convert(
        self, concrete, seconds: float = 0.0, bound: Mapping = {}, **changes
    ) -> Call | LiveCall:
        """`convert` of a function of the target, with changes of the settings."""
        settings = self.settings._replace(**changes)
        return convert(concrete, settings, self.bundles, (self.target,), seconds, bound)


def convert(
    concrete, settings: Settings, bundles, roots, seconds: float = 0.0, bound: Mapping = {}
) -> Call | LiveCall:
    """The Call of a function, rewritten; it took TensorFlow `seconds` to trace.

    Args:
        bound: how arguments are bound, as a Call takes it.
    """
    trained = [weakref.ref(variable) for variable in concrete.trainable_variables]
    options = settings.options
    rewritten = rewriter.optimize_concrete(
        concrete,
        roots=roots,
        bundles=None if options.is_live else bundles,  # Each follows by itself.
        options=options,
        example=settings.example,
        takes_example=settings.takes_example,
        calibration=settings.calibration,
        on_batch=settings.on_batch,
    )
    is_original = rewritten.concrete is concrete  # which has the gradients by the weights
    weights = () if is_original else trained
    wrap = functools.partial(Call, original=concrete, weights=weights, **bound)
    call = wrap(rewritten) if rewritten.live is None else LiveCall(rewritten, wrap)
    call.report.tracing_seconds = seconds
    return call


def time_trace(trace: Callable, *args, **kwargs) -> tuple:
    """What the function traces, and the seconds that it takes."""
    start = time.perf_counter()
    with without_collection():
        traced = trace(*args, **kwargs)
    return traced, time.perf_counter() - start


def has_open_sizes(specs) -> bool:
    """Whether a size other than the batch is unknown."""
    shapes = [s.shape for s in tf.nest.flatten(specs) if isinstance(s, tf.TensorSpec)]
    return any(shape.rank is None or None in shape.as_list()[1:] for shape in shapes)


def close_sizes(specs, example):
    """The specs with the sizes of the tensors or arrays in `example`, one for each.

    Raises:
        ValueError: another number of them, other names, or shapes that the specs do not allow.
    """
    names = {spec.name for spec in tf.nest.flatten(specs) if spec.name}
    if isinstance(example, Mapping) and names and set(example) != names:
        raise UserError(f"example has {sorted(example)}, the arguments are {sorted(names)}")
    wanted, values = tf.nest.flatten(specs), tf.nest.flatten(example)
    if len(values) != len(wanted):
        raise UserError(
            f"example must hold {len(wanted)} tensors, one for each argument, not {len(values)}"
        )
    merged = []
    for spec, value in zip(wanted, values, strict=True):
        shape = tf.TensorShape(np.shape(value))
        if not spec.shape.is_compatible_with(shape):
            raise UserError(f"example: {spec.name or 'an argument'} is {spec.shape}, not {shape}")
        merged.append(tf.TensorSpec(shape, spec.dtype, spec.name))
    return tf.nest.pack_sequence_as(specs, merged)


def describe(args, kwargs: Mapping = {}) -> str:
    """Arguments in one line: "float32 (8, 16), scale=2.0"."""

    def text(value) -> str:
        if isinstance(value, (list, tuple, Mapping)):
            return ", ".join(map(text, tf.nest.flatten(value)))
        is_spec = isinstance(value, tf.TensorSpec)
        return f"{value.dtype.name} {value.shape}" if is_spec else repr(value)

    return ", ".join([*map(text, args), *(f"{name}={text(v)}" for name, v in kwargs.items())])


def of_any_batch(spec):
    """The spec with an unknown first size."""
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank:
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype, spec.name)
    return spec
