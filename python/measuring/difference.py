"""How far results differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far two outputs differ: the largest absolute difference and the reference's range."""

    absolute: float
    magnitude: float

    @property
    def relative(self) -> float:
        """`absolute` as a fraction of the reference's largest magnitude."""
        return self.absolute / self.magnitude if self.magnitude else self.absolute

    def to_json(self) -> dict:
        """{"largest_difference", "relative_difference"} as plain numbers."""
        return {"largest_difference": self.absolute, "relative_difference": self.relative}


def largest_difference(reference: Iterable, actual: Iterable) -> Difference:
    """Compares two flat sequences of arrays, element by element in float64.

    NaNs in the same place are equal; a NaN against a number, or an infinity against anything else,
    makes the difference infinite. Arrays of text or truth values differ by 0 or infinity.

    Raises:
      ValueError: another number of arrays, or arrays of other shapes.
    """
    absolute = magnitude = 0.0
    for want, got in zip(map(np.asarray, reference), map(np.asarray, actual), strict=True):
        if want.shape != got.shape:
            raise ValueError(f"shapes differ: {want.shape} against {got.shape}")
        if not (np.issubdtype(want.dtype, np.number) and want.size):
            absolute = max(absolute, 0.0 if np.array_equal(want, got) else np.inf)
            continue
        absolute = max(absolute, float(distances(want, got).max()))
        finite = np.abs(want[np.isfinite(want)].astype(np.float64))
        magnitude = max(magnitude, float(finite.max(initial=0.0)))
    return Difference(absolute, magnitude)


def distances(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """|want - got| of each number: 0 for equal infinities and for NaN twice, never NaN."""
    wide = np.result_type(want.dtype, np.float64)
    want, got = want.astype(wide), got.astype(wide)
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    with np.errstate(invalid="ignore"):
        distances = np.where(same, 0.0, np.abs(want - got))
    return np.where(np.isnan(distances), np.inf, distances)
