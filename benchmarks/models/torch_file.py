"""Reads the tensors of a file that torch.save wrote, without torch and without running its code."""

from __future__ import annotations

import collections
import pathlib
import pickle
import struct
import zipfile
from typing import NamedTuple

import numpy as np

_TYPES = {"FloatStorage": np.float32, "LongStorage": np.int64, "HalfStorage": np.float16}


class _Tensor(NamedTuple):
    """Where the elements of a tensor lie in a storage: in elements, not bytes."""

    dtype: type
    key: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, storages: dict[str, bytes]) -> np.ndarray:
        values = np.frombuffer(storages[self.key], self.dtype)[self.offset :]
        steps = [stride * values.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(values, self.shape, steps).copy()


class _Unpickler(pickle.Unpickler):
    """Knows dictionaries of tensors and nothing else."""

    def find_class(self, module: str, name: str):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: _Tensor(
                *storage, offset, shape, strides
            )
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        raise pickle.UnpicklingError(f"{module}.{name} is no tensor")

    def persistent_load(self, saved):
        _, dtype, key, *_ = saved
        return dtype, key


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """name -> tensor of a state dict, in the form of torch 1.6 and later or in the one before."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            (index,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(index) as file:
                tensors = _Unpickler(file).load()
            folder = index.removesuffix("data.pkl") + "data/"
            keys = {tensor.key for tensor in tensors.values()}
            storages = {key: archive.read(folder + key) for key in keys}
    else:
        with path.open("rb") as file:
            for _ in range(3):  # a magic number, the version, the sizes of integers
                _Unpickler(file).load()
            tensors = _Unpickler(file).load()
            dtypes = {tensor.key: np.dtype(tensor.dtype) for tensor in tensors.values()}
            storages = {}
            for key in _Unpickler(file).load():
                (count,) = struct.unpack("<q", file.read(8))
                storages[key] = file.read(count * dtypes[key].itemsize)
    return {name: tensor.array(storages) for name, tensor in tensors.items()}
