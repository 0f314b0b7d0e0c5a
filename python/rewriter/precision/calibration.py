"""Calibration data: batches of a function's arguments, some of which are held back for judging."""

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import tensorflow as tf

from ...errors import UserError

_MOST_BATCH = 32  # samples of an array that are run at once, where the function leaves it open
_HELD_BACK = 4  # every so many batches one
_MOST_HELD = 16  # batches
# A value this many times as far from zero as the median sample reaches: a byte that holds it has
# no step left for that sample, whose numbers would all become zero.
_FAR = 512
_MISSING = (
    'precision="int8", or max_loss, needs calibration: some dozens of typical inputs, as an array '
    "of samples, a tf.data.Dataset of batches, or a .npz file or a folder of .npy files "
    '(--calibration); precision="bf16" and "int8-dynamic" without max_loss need none'
)


class CalibrationError(UserError):
    """Calibration data that do not fit."""


def keep_batches(data):
    """The data, which can be read again: a generator does not begin again; batches are few."""
    return list(data) if isinstance(data, Iterator) else data


class Calibration:
    """What was passed as calibration data, read batch by batch as arguments of functions.

    Args:
        data: an array or tensor of samples, of a function of one argument; a mapping of names of
            arguments to them; or anything that yields batches, again and again or once, such as a
            tf.data.Dataset or a list: an array each for one argument, else a tuple or a mapping.
            Or a path: of a .npz file with an array of samples for each argument, by name or alone;
            of a .npy file; of a folder of .npy files, a sample each.
        on_batch: called before the first batch and after each with the number of those done, and
            of all of them where that is known.

    Attributes:
        limits: argument -> the magnitude beyond which values count as zero: they lie far beyond
            what most samples hold, as -1e9 does for what is missing. Known once batches come.

    Raises:
        CalibrationError: it is None, or a path at which there are no such arrays.
    """

    def __init__(self, data, on_batch: Callable[[int, int | None], None] | None = None):
        if data is None:
            raise CalibrationError(_MISSING)
        self._note = on_batch or (lambda done, total: None)
        if isinstance(data, str | os.PathLike):
            data = read_arrays(pathlib.Path(data))
        self._data = keep_batches(data)
        self.limits: dict[str, float] | None = None

    def batches(self, concrete) -> Iterator[list[tf.Tensor]]:
        """The arguments of each call of a ConcreteFunction.

        Raises:
            CalibrationError: the data do not fit the function, holds NaN or
                infinities, or is empty.
        """
        count = len(concrete.inputs) - len(concrete.captured_inputs)
        wanted, any_came = concrete.inputs[:count], False
        names = _names(concrete, wanted)
        batches = self._raw(wanted, names)
        total = _count(batches)
        self._note(0, total)
        if self.limits is None:
            self.limits = _limits(
                names, (_arguments(b, wanted, names, n) for n, b in enumerate(batches))
            )
        for number, batch in enumerate(batches):
            arguments = _arguments(batch, wanted, names, number)
            if all(0 not in tensor.shape for tensor in arguments) or not arguments:
                any_came = True
                yield list(map(self._within, names, arguments))
            self._note(number + 1, total)
        if not any_came:
            raise CalibrationError(
                "calibration holds no samples: give some dozens of typical inputs"
            )

    def _within(self, name: str, tensor: tf.Tensor) -> tf.Tensor:
        """The tensor with zero in the place of what is beyond the limit."""
        if name not in self.limits:
            return tensor
        is_far = tf.abs(tensor) > tf.cast(self.limits[name], tensor.dtype)
        return tf.where(is_far, tf.zeros_like(tensor), tensor)

    def _raw(self, wanted, names) -> Iterable:
        data = self._data
        if isinstance(data, Mapping):
            arrays = {name: _as_array(value, name) for name, value in data.items()}
            if len({len(array) for array in arrays.values()}) > 1:
                sizes = {name: len(array) for name, array in arrays.items()}
                raise CalibrationError(
                    f"calibration has other numbers of samples for each name: {sizes}"
                )
            return _cut(arrays, wanted, names)
        if isinstance(data, np.ndarray | np.generic | tf.Tensor):
            return _cut({names[0] if names else "": _as_array(data, "calibration")}, wanted, names)
        try:
            iter(data)
        except TypeError:
            raise CalibrationError(
                "calibration must be an array of samples, a mapping of arrays, or batches, not "
                f"{type(data).__name__}"
            ) from None
        return data


def split(batches: Iterable[list[tf.Tensor]]) -> Iterator[tuple[list[tf.Tensor], bool]]:
    """(batch, whether it is held back) of each: every fourth is, sixteen at most.

    Of a single batch of several samples the last quarter is held back; a single sample, or what
    the function takes only at once, is both.
    """
    held, first, number = 0, None, -1
    for number, batch in enumerate(batches):
        if number == 0:
            first = batch
            continue
        if number == 1:
            yield first, False
        keep = number % _HELD_BACK == 1 and held < _MOST_HELD
        held += keep
        yield batch, keep
    if number == 0:
        yield first, False
        yield first, True


def _limits(names: list[str], batches: Iterable[list[tf.Tensor]]) -> dict[str, float]:
    """What `Calibration.limits` says."""
    reach: dict[str, list[float]] = {name: [] for name in names}
    for arguments in batches:
        for name, tensor in zip(names, arguments, strict=True):
            if tensor.dtype.is_floating and tensor.shape.rank:
                values = np.abs(tensor.numpy().astype(np.float64))
                most = values.max(axis=tuple(range(1, values.ndim)), initial=0.0)
                reach[name] += most[most > 0].tolist()
    limits = {n: _FAR * np.percentile(r, 50, method="lower") for n, r in reach.items() if r}
    return {name: float(limit) for name, limit in limits.items() if limit < max(reach[name])}


def _count(batches: Iterable) -> int | None:
    """How many there are, where that is known before they come."""
    try:
        return len(batches)
    except TypeError:  # a tf.data.Dataset may have a length and not know it
        return None


def _names(concrete, wanted) -> list[str]:
    """The name of each argument, as signatures have them."""
    _, kwargs = concrete.structured_input_signature or ((), {})
    if len(tf.nest.flatten(kwargs)) == len(wanted) and kwargs:
        return sorted(kwargs)
    return [tensor.op.name for tensor in wanted]


def _as_array(value, name: str) -> np.ndarray:
    array = np.asarray(value)
    if not array.ndim:
        raise CalibrationError(f"calibration: {name} must hold samples along its first dimension")
    return array


def _cut(arrays: dict[str, np.ndarray], wanted, names) -> list[dict[str, np.ndarray]]:
    """Batches of arrays of samples: of the function's own size where it has one."""
    sizes = {tensor.shape[0] for tensor in wanted if tensor.shape.rank}
    fixed = next((size for size in sizes if size is not None), None)
    samples = len(next(iter(arrays.values()), ()))
    # At least four batches where there are so many samples, so that one can be held back.
    batch = fixed or max(1, min(_MOST_BATCH, samples // _HELD_BACK))
    if fixed and samples and samples < fixed:
        raise CalibrationError(
            f"calibration has {samples} samples; a batch of the function has {fixed}"
        )
    count = samples - samples % batch if fixed else samples
    return [
        {name: array[first : first + batch] for name, array in arrays.items()}
        for first in range(0, count, batch)
    ]


def _arguments(batch, wanted, names: list[str], number: int) -> list[tf.Tensor]:
    """The batch as tensors, one for each argument, checked."""
    where = f"calibration, batch {number}"
    if isinstance(batch, Mapping):
        if set(batch) != set(names):
            raise CalibrationError(
                f"{where} has {sorted(batch)}; the function takes {sorted(names)}"
            )
        values = [batch[name] for name in names]
    elif isinstance(batch, tuple | list) and not (len(wanted) == 1 and len(batch) != 1):
        values = list(batch)
    elif isinstance(batch, tuple):
        raise CalibrationError(
            f"{where} has {len(batch)} parts; the function takes one argument: give inputs without "
            "labels, such as dataset.map(lambda x, y: x)"
        )
    else:
        values = [batch]
    if len(values) != len(wanted):
        raise CalibrationError(
            f"{where} has {len(values)} tensors; the function takes {len(wanted)}"
        )
    return [
        _checked(value, tensor, f"{where}, {name}")
        for value, tensor, name in zip(values, wanted, names, strict=True)
    ]


def _checked(value, wanted, where: str) -> tf.Tensor:
    try:
        tensor = tf.convert_to_tensor(value)
        if tensor.dtype != wanted.dtype:
            tensor = tf.cast(tensor, wanted.dtype)
    except (TypeError, ValueError, tf.errors.OpError):
        raise CalibrationError(f"{where} is no tensor of {wanted.dtype.name}") from None
    if not wanted.shape.is_compatible_with(tensor.shape):
        is_sample = wanted.shape.rank and wanted.shape[1:].is_compatible_with(tensor.shape)
        raise CalibrationError(
            f"{where} is {tensor.shape}; the function takes {wanted.shape}"
            + (": give batches, such as dataset.batch(1)" if is_sample else "")
        )
    if tensor.dtype.is_floating and not np.isfinite(tensor.numpy().astype(np.float32)).all():
        raise CalibrationError(f"{where} holds NaN or infinities")
    return tensor


def read_arrays(path: pathlib.Path):
    """The arrays that a file or a folder holds, by name or one alone.

    Raises:
        CalibrationError: there are none, or they cannot be read.
    """
    try:
        if path.is_dir():
            samples = [np.load(file, allow_pickle=False) for file in sorted(path.glob("*.npy"))]
            arrays = {"arr_0": np.stack(samples)} if samples else {}
        else:
            loaded = np.load(path, allow_pickle=False)
            arrays = {"arr_0": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except FileNotFoundError:
        raise CalibrationError(f"{path}: no such file or folder") from None
    except (OSError, EOFError) as error:
        raise CalibrationError(f"{path} cannot be read: {error}") from None
    except ValueError:  # pickled objects, text, or samples of several shapes
        raise CalibrationError(f"{path} holds no arrays of numbers of one shape") from None
    if not arrays:
        kind = ".npy files: save each sample with numpy.save" if path.is_dir() else "arrays"
        raise CalibrationError(f"{path} holds no {kind}")
    return arrays["arr_0"] if list(arrays) == ["arr_0"] else arrays
