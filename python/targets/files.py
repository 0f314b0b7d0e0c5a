"""Paths as targets: SavedModels, LiteRT files, and what Keras writes, model.keras and model.h5.

What reads the other kinds is imported for a file of the kind: a saved result loads without it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .. import folders, metagraph
from ..native import collecting_new, return_free_memory
from .result import OptimizedModel, Shared
from .saved_model import SavedModel
from .target import Settings, Target

if TYPE_CHECKING:
    from .keras_result import OptimizedKerasModel


class Path(Target):
    """A folder or file, which becomes what is in it."""

    TYPES = (str, os.PathLike)
    TAKES = frozenset({"input_signature", "custom_objects"})

    def result(self):
        with collecting_new():  # Nobody holds what is read, but it consists of cycles.
            result = self._inner().result()
        if isinstance(result, Shared):
            result.again = _optimize, (os.path.abspath(self.target), self.settings)
        return_free_memory()
        return result

    def _inner(self) -> Target:
        path, settings = folders.check_model(self.target), self.settings
        if folders.is_keras_file(path):
            from .keras import Keras
            from .keras_files import read_keras

            read = functools.partial(read_keras, path, settings.custom_objects)
            return Keras(read(), settings._replace(custom_objects=None), read)
        read = functools.partial(read_model, path)
        return SavedModel(read(), settings, read)


def read_model(path):
    """A SavedModel, or what a LiteRT file is as one."""
    if not folders.is_lite_file(path):
        return metagraph.load(path)
    from .. import lite

    return lite.read(path)


def _optimize(path: str, settings):
    return Path(path, settings).result()


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
