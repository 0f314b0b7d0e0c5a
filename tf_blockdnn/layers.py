"""Keras layers on blocked tensors: `bd.layers.Conv2D(...)`, `bd.layers.convert(model)`."""

from .python import layers as _layers
from .python.layers import *  # noqa: F403

__all__ = list(_layers.__all__)
