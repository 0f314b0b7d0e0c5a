"""Weights in files that are mapped, not read: the system has the pages that nobody reads.

A result's folded weights lie in a file without a name, which goes with it. Once they are packed,
nothing of it is resident. A SavedModel has them as an asset, which processes share.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from tempfile import TemporaryFile

import numpy as np
import tensorflow as tf

from ..native import c_call, library
from ..tensorflow_private import asset, resource

_ALIGN = 64  # bytes
_LEAST = 1 << 20  # bytes: a page or two by itself is no gain
# What is written at once lies together in the system's cache, and is resident as one when a bias
# is read: as much as small parts of a bundle lie together.
_AT_ONCE = 1 << 16


def in_file(size: int, parts: Sequence[tuple[int, Callable[[], np.ndarray]]]) -> tf.Tensor:
    """A float32 vector in a file without a name; in memory, where there is no room for one.

    Args:
      size: how many floats.
      parts: of each the offset, and what returns its values, of any type. They are written one
        after the other, so that memory holds one of them at most; zeros lie between them.
    """
    with tf.init_scope(), tf.device("CPU:0"):  # a tf.function may be traced meanwhile
        if 4 * size >= _LEAST:
            try:
                with TemporaryFile(prefix="tf_blockdnn") as file:
                    for offset, values in parts:
                        file.seek(4 * offset)
                        _write(file, values())
                    file.truncate(4 * size)
                    path = f"/proc/self/fd/{file.fileno()}"
                    return library().blockdnn_read_weights(path, tf.float32, [size], 0)
            except (OSError, tf.errors.OpError):
                pass
        vector = np.zeros(size, np.float32)
        for offset, values in parts:
            data = _bytes(values())
            vector.view(np.uint8)[4 * offset :][: len(data)] = data
        return tf.constant(vector)


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _write(file, values: np.ndarray) -> None:
    data = memoryview(_bytes(values))
    for first in range(0, len(data), _AT_ONCE):
        file.write(data[first : first + _AT_ONCE])


def checked(weights: tf.Tensor) -> tf.Tensor:
    """The tensor, before it is read here, where a page that the file has lost would be a signal.

    Raises:
      ValueError: somebody has written into the file in which it lies.
    """
    c_call("BlockdnnCheckWeights", np.asarray(weights).ctypes.data)
    return weights


def is_large(values) -> bool:
    """Whether an array or variable is worth a place in a file."""
    dtype = tf.as_dtype(values.dtype)
    return dtype != tf.string and dtype.size * int(np.prod(values.shape)) >= _LEAST


def keeps_packs() -> bool:
    """Whether packed forms of a SavedModel's weights lie in files, too, as PackFolder says."""
    return os.environ.get("TF_BLOCKDNN_CACHE") != "0"


def write(file, arrays: Iterable[np.ndarray]) -> list[int]:
    """Writes arrays one after the other; returns where each begins."""
    offsets = []
    for values in arrays:
        offsets.append(-(-file.tell() // _ALIGN) * _ALIGN)
        file.seek(offsets[-1])
        _write(file, values)
    file.flush()
    return offsets


class SavedWeights(resource.CapturableResource):
    """A variable of weights as a SavedModel has it: loading maps the values from an asset.

    It stands in the variable's place while that is saved. TensorFlow makes and initialises such
    resources as it does tables, in `tf.saved_model.load`, sessions and Serving alike.
    """

    def __init__(self, variable: tf.Variable, file: asset.Asset, offset: int):
        super().__init__("CPU")
        self._dtype, self._shape, self._offset = variable.dtype, variable.shape, offset
        self._file = file
        self._resource_handle_value = variable.handle
        self._track_trackable(file, "file")

    def _create_resource(self):
        """A new variable each time, which goes with the last function that has it."""
        return library().blockdnn_weights_variable(self._dtype, self._shape)

    def _initialize(self):
        path, at = self._file.asset_path, self._offset
        handle = self.resource_handle
        library().blockdnn_load_weights(handle, path, self._dtype, self._shape, at)

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Without a function that does nothing, and that each load would trace."""
        children = super()._trackable_children(save_type, **kwargs)
        children.pop("_destroy_resource", None)
        return children


def saved_weights(variables: Sequence[tf.Variable], path: str) -> list[SavedWeights]:
    """What stands for the variables in a SavedModel, whose asset is written to `path`."""
    with open(path, "wb") as file:
        offsets = write(file, (np.asarray(checked(v.read_value())) for v in variables))
    held = asset.Asset(path)
    pairs = zip(variables, offsets, strict=True)
    return [SavedWeights(variable, held, offset) for variable, offset in pairs]


def loaded_weights(thing) -> list:
    """Of what was loaded in the place of SavedWeights: that, and the asset; of others nothing."""
    functions = getattr(getattr(thing, "_initialize", None), "concrete_functions", ())
    ops_of = (op.type for f in functions for op in f.graph.get_operations())
    return [thing, thing.file] if "BlockdnnLoadWeights" in ops_of else []
