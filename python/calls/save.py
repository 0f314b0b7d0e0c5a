"""Optimised functions written as a SavedModel."""

import os
from collections.abc import Mapping

import tensorflow as tf


def save_functions(functions: Mapping, folder: str | os.PathLike) -> None:
    """Writes a SavedModel; load it after `import tf_blockdnn`.

    Args:
        functions: signature name -> OptimizedFunction.
        folder: where to; made if it does not exist.

    Raises:
        ValueError: the name of a Keras file instead of a folder.
    """
    folder = os.fspath(folder)
    if folder.endswith((".keras", ".h5")):
        raise ValueError(
            f"{folder}: an optimised model is written as a SavedModel; give the name of a folder"
        )
    module = tf.Module()
    if "serve" in functions:  # Keras's exports have it as a method, too.
        module.serve = functions["serve"].concrete
    owners = {id(t): t for function in functions.values() for t in function.trackables}
    module.captured = list(owners.values())
    signatures = {name: function.concrete for name, function in functions.items()}
    tf.saved_model.save(module, folder, signatures=signatures)
