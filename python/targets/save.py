"""Optimised functions written as a SavedModel."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping

import tensorflow as tf

from .. import rewriter
from ..rewriter.weights_file import is_large, saved_weights
from ..tensorflow_private import AutoTrackable, call_signature, type_of


def save_functions(
    functions: Mapping,
    folder: str | os.PathLike,
    endpoints: Mapping | None = None,
    held: Iterable = (),
) -> None:
    """Writes a SavedModel; load it after `import tf_blockdnn`.

    Args:
        functions: signature name -> OptimizedFunction.
        folder: to write; created if it does not exist.
        endpoints: name of an attribute -> OptimizedFunction, which may have several signatures.
        held: tables, assets and initialisers that belong to it.

    Raises:
        ValueError: the name of a Keras file instead of a folder.
    """
    folder = os.fspath(folder)
    if folder.endswith((".keras", ".h5")):
        raise ValueError(
            f"{folder}: an optimised model is written as a SavedModel; give the name of a folder"
        )
    root = AutoTrackable()
    signatures = {name: function.served for name, function in functions.items()}
    for name, function in (endpoints or {}).items():
        setattr(root, name, _endpoint(function))
    calls = [function.only() for function in functions.values()]
    calls += [call for function in (endpoints or {}).values() for call in function.all()]
    captured = {id(t): t for call in calls for t in call.trackables}
    large = [t for t in captured.values() if rewriter.is_folded(t) and is_large(t)]
    here = None  # There is room for them where the copy goes, or nowhere.
    if large and "://" not in folder:
        os.makedirs(here := folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tf_blockdnn-", dir=here) as place:
        stored = saved_weights(large, os.path.join(place, rewriter.BUNDLE)) if large else []
        for value in large:
            del captured[id(value)]
        root._blockdnn_captured = [*({id(t): t for t in held} | captured).values(), *stored]
        old = os.path.join(folder, "assets", rewriter.BUNDLE)
        with contextlib.suppress(OSError):  # TensorFlow would write into what others have mapped.
            os.remove(old)
        shutil.rmtree(f"{old}.packed", ignore_errors=True)
        tf.saved_model.save(root, folder, signatures=signatures)


def _endpoint(function):
    """A tf.function that a SavedModel has as an attribute, with all signatures of `function`."""

    def endpoint(*args, **kwargs):
        return function(*args, **kwargs)

    calls = function.all()
    endpoint.__signature__ = function.signature or call_signature(type_of(calls[0].concrete))
    written = tf.function(endpoint, autograph=False)
    for call in calls:
        args, kwargs = call.concrete.structured_input_signature
        written.get_concrete_function(*args, **kwargs)
    return written
