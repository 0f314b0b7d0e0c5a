"""What a target is to `optimize`: a kind of thing with functions in, which becomes a result."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..native import without_collection
from ..rewriter import Bundles


class Settings(NamedTuple):
    """What a caller says of the target itself; `signatures` None are all that it has."""

    input_signature: tuple | None = None
    custom_objects: Mapping[str, object] | None = None
    example: object = None
    signatures: Collection[str] | None = None
    on_step: Callable[[str], None] = lambda words: None


class Target(ABC):
    """One kind of thing that holds TensorFlow functions.

    Attributes:
        OPTIONS: those of `Settings` that mean something to it, `example` apart.
        KIND: what a message calls it.
    """

    OPTIONS: frozenset[str] = frozenset()
    KIND = ""

    def __init__(self, target, rewrite: Callable, settings: Settings):
        """
        Args:
            rewrite: (ConcreteFunction, bundles, roots, **options) -> Call.
        """
        self.target, self.rewrite, self.settings = target, rewrite, settings
        self.bundles = Bundles()  # whose functions share weights

    @classmethod
    @abstractmethod
    def takes(cls, target) -> bool:
        """Whether this is for it; imports nothing."""

    @abstractmethod
    def result(self):
        """What stands for the target from now on: it is called and saved as that is."""

    def convert(self, concrete, seconds: float = 0.0, **options):
        """The Call of what it took TensorFlow `seconds` to trace."""
        call = self.rewrite(concrete, self.bundles, (self.target,), **options)
        call.report.tracing_seconds = seconds
        return call


def timed_trace(trace: Callable, *args, **kwargs) -> tuple:
    """What the function traces, and the seconds that it takes."""
    start = time.perf_counter()
    with without_collection():
        traced = trace(*args, **kwargs)
    return traced, time.perf_counter() - start


def has_open_sizes(specs) -> bool:
    """Whether a size other than the batch is unknown."""
    shapes = [s.shape for s in tf.nest.flatten(specs) if isinstance(s, tf.TensorSpec)]
    return any(shape.rank is None or None in shape.as_list()[1:] for shape in shapes)


def sized(specs, example):
    """The specs with the sizes of the tensors or arrays in `example`, one for each.

    Raises:
        ValueError: another number of them, other names, or shapes that the specs do not allow.
    """
    names = {spec.name for spec in tf.nest.flatten(specs) if spec.name}
    if isinstance(example, Mapping) and names and set(example) != names:
        raise UserError(f"example has {sorted(example)}, the arguments are {sorted(names)}")
    wanted, given = tf.nest.flatten(specs), tf.nest.flatten(example)
    if len(given) != len(wanted):
        raise UserError(
            f"example must hold {len(wanted)} tensors, one for each argument, not {len(given)}"
        )
    found = []
    for spec, value in zip(wanted, given, strict=True):
        shape = tf.TensorShape(np.shape(value))
        if not spec.shape.is_compatible_with(shape):
            raise UserError(f"example: {spec.name or 'an argument'} is {spec.shape}, not {shape}")
        found.append(tf.TensorSpec(shape, spec.dtype, spec.name))
    return tf.nest.pack_sequence_as(specs, found)


def of_any_batch(spec):
    """The spec with an unknown first size."""
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank:
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype, spec.name)
    return spec
