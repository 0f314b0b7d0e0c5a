"""What Keras wrote, model.keras and model.h5: the model, and as a SavedModel has it."""

import importlib
import os
import re
from collections.abc import Mapping

import tensorflow as tf

from .. import folders
from ..errors import SavedModelError, UserError
from ..rewriter.trackables import owners
from ..tensorflow_private import canonicalize_signatures
from .files import read_model
from .keras import OpenSizesError, trace
from .keras_inputs import input_specs, name_results, with_names
from .keras_result import register
from .target import close_sizes, of_any_batch


def load_signatures(path, custom_objects: Mapping | None = None, example=None) -> tuple:
    """What tf.saved_model.load returns, of a SavedModel, a LiteRT file or a file of Keras's.

    The second of the two says whether Keras can trace it only for the sizes of the example.

    Raises:
        ValueError: an example that the model does not take.
        SavedModelError: no model there, or one that cannot be loaded.
    """
    path = folders.check_model(path)
    if not folders.is_keras_file(path):
        if custom_objects:
            raise UserError(
                f"custom_objects mean nothing to {path}, which Keras did not write: leave them out"
            )
        return read_model(path), False
    model, with_example = read_keras(path, custom_objects), False
    try:
        specs = input_specs(model)
        try:
            ((concrete, _), _) = trace(model, specs)
        except OpenSizesError:
            if example is None:
                raise
            with_example = True
            known = tf.nest.map_structure(of_any_batch, close_sizes(specs, example))
            ((concrete, _), _) = trace(model, known)
    except (LookupError, OpenSizesError) as error:
        raise SavedModelError(f"{path}: {error}") from error
    loaded = tf.Module()
    loaded.captured = owners(concrete, [concrete, model])
    loaded.signatures, *_ = canonicalize_signatures(with_names(concrete, name_results(model)))
    return loaded, with_example


def read_keras(path: str | os.PathLike, custom_objects: Mapping[str, object] | None = None):
    """The model in the file, from Keras 3, or from Keras 2 (tf_keras) where only that can read it.

    Args:
        custom_objects: name -> class or function of the user's that the model consists of.

    Raises:
        SavedModelError: no such file, not a model, or custom objects that were not given.
    """
    path = folders.check_model(path)
    failures = []
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    for name in ("tf_keras", "keras") if legacy else ("keras", "tf_keras"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        try:
            register(library)
            return library.models.load_model(
                path, custom_objects=dict(custom_objects or {}), compile=False
            )
        except Exception as error:  # The file decides what code runs here: any type may come.
            failures.append(error)
    if not failures:
        raise SavedModelError(f"{path}: Keras is not installed: pip install keras")
    error = failures[0]
    text = " ".join(str(error).split())
    reason = _reason(error) or f"Keras cannot load it ({type(error).__name__}: {text[:200]})"
    raise SavedModelError(f"{path}: {reason}") from error


_CUSTOM = re.compile(r"(?:Could not locate (?:class|function)|Unknown [\w ]+:) [\"']?(\w+)")


def _reason(error: Exception) -> str:
    """What is wrong with the file, with the remedy; empty where that is not known."""
    text = " ".join(str(error).split())
    if match := _CUSTOM.search(text):
        name = match.group(1)
        return (
            f"holds the custom object {name}: give custom_objects={{{name!r}: {name}}}, or on the "
            "command line --custom-objects with the Python module that defines it"
        )
    if isinstance(error, (OSError, ValueError)) and re.search(
        r"signature not found|not a zip|isn't a zip|accessible `.keras` zip|file header", text
    ):
        return "not a file that Keras wrote"
    return ""
