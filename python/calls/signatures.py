"""Several rewritten functions: the signatures of a SavedModel."""

import os
from collections.abc import Mapping

from ..rewriter import Report
from ..tensorflow_private import unconverted
from .function import OptimizedFunction
from .save import save_functions

_DEFAULT = "serving_default"


@unconverted
class OptimizedModel:
    """Several rewritten functions under their signature names; calls go to the default one.

    Attributes:
        signatures: name -> OptimizedFunction.
        report: the default signature's report; the others are in their functions.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> model.export("two_signatures", verbose=False)
        >>> fast = bd.optimize("two_signatures")
        >>> sorted(fast.signatures)
        ['serve', 'serving_default']
    """

    def __init__(self, signatures: Mapping[str, OptimizedFunction]):
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
