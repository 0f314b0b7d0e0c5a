"""Paths as targets: SavedModels, LiteRT files, and what Keras writes, model.keras and model.h5.

What reads the other kinds is imported for a file of the kind: a saved result loads without it.
"""

import functools
import os

from .. import folders, metagraph
from ..native import collecting_new, return_free_memory
from .result import Shared
from .saved_model import SavedModel
from .target import Target


class Path(Target):
    """A folder or file, which becomes what is in it."""

    TAKES = frozenset({"input_signature", "custom_objects"})

    @classmethod
    def takes(cls, target) -> bool:
        return isinstance(target, (str, os.PathLike))

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
