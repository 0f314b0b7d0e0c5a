"""Several rewritten functions: the signatures of a SavedModel."""

import os
from collections.abc import Mapping

import tensorflow as tf

from ..rewriter import Report
from ..tensorflow_private import unconverted
from .function import OptimizedFunction
from .keras_function import has_open_sizes, of_any_batch, sized
from .polymorphic import PolymorphicFunction
from .save import save_functions

_DEFAULT = "serving_default"


@unconverted
class OptimizedModel:
    """Several rewritten functions under their signature names; calls go to the default one.

    Attributes:
        signatures: name -> OptimizedFunction, or, where an example closed its sizes, a
            PolymorphicFunction.
        report: the default signature's report; the others are in their functions.

    Args:
        signatures: what the attribute becomes: "serving_default", or else the first, is the
            default.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> model.export("two_signatures", verbose=False)
        >>> fast = bd.optimize("two_signatures")
        >>> sorted(fast.signatures)
        ['serve', 'serving_default']
    """

    def __init__(self, signatures: Mapping[str, OptimizedFunction | PolymorphicFunction]):
        self.signatures = dict(signatures)
        name = _DEFAULT if _DEFAULT in self.signatures else next(iter(self.signatures))
        self._default = self.signatures[name]

    @property
    def report(self) -> Report:
        return self._default.report

    @property
    def concrete(self):
        """The rewritten ConcreteFunction of the default signature."""
        return self._default.concrete

    def __call__(self, *args, **kwargs):
        return self._default(*args, **kwargs)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel with the same signatures; load it after `import tf_blockdnn`."""
        save_functions(self.signatures, folder)


def closed(concrete, example):
    """The signature with the sizes of `example` where it leaves some open; else None.

    Batches that were open stay open.

    Args:
        concrete: a signature of a loaded SavedModel: named arguments, all of them tensors.
        example: a tensor or array for each argument: a mapping of names, a list, or one alone.

    Raises:
        ValueError: an example that the signature does not take.
    """
    specs = concrete.structured_input_signature[1]
    fitting = sized(specs, example)
    if not has_open_sizes(specs):
        return None
    known = {
        name: of_any_batch(spec) if specs[name].shape[:1] == [None] else spec
        for name, spec in fitting.items()
    }
    return tf.function(lambda **given: concrete(**given), autograph=False).get_concrete_function(
        **known
    )


def sizes(concrete) -> str:
    """The shapes of a signature's arguments: "image (None, 64, 64, 3)"."""
    specs = concrete.structured_input_signature[1]
    return ", ".join(f"{name} {spec.shape}" for name, spec in sorted(specs.items()))
