"""Keras callbacks: `bd.callbacks.Optimized()`."""

from .python.callbacks import Optimized

__all__ = ["Optimized"]
