"""`load`: what `optimize` wrote, as fast as it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .. import folders
from .files import Path
from .target import Settings

if TYPE_CHECKING:
    from .keras_result import OptimizedKerasModel
    from .result import OptimizedModel


def load(
    path: str | os.PathLike, *, custom_objects: Mapping[str, object] | None = None
) -> OptimizedModel | OptimizedKerasModel:
    """Loads a SavedModel with calls that are as fast as those of `optimize`'s result.

    One that `optimize_saved_model`, `fast.save` or the command line wrote is called as it is;
    any other is optimised first.

    Args:
        path: the folder of the SavedModel; or a .keras file with an optimised model, which may
            be a layer of another: that is optimised again.
        custom_objects: name -> class or function, for a .keras file that needs them.

    Returns:
        The model, to be called by its default signature, with `.signatures`, `.report` and
        `.save(folder)`; of a .keras file the keras.Model.

    Raises:
        SavedModelError: neither, or a file that cannot be loaded.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> bd.optimize(model).save("fast_model")
        >>> fast = bd.load("fast_model")
        >>> fast(tf.ones((1, 8, 8, 3)))["output_0"].shape
        TensorShape([1, 6, 6, 8])
    """
    path = folders.check_model(path)
    if not folders.is_keras_file(path):
        return Path(path, Settings(custom_objects=custom_objects)).result()
    from .keras_files import read_keras
    from .keras_result import OptimizedKerasModel

    model = read_keras(path, custom_objects)
    if not any(isinstance(part, OptimizedKerasModel) for part in (model, *model.layers)):
        folders.check_source(path)
    return model
