"""Errors that people can put right, and warnings."""

import sys
import warnings


class UserError(ValueError):
    """What the user gave is wrong; the message is one line that names it and a remedy."""


class SavedModelError(UserError):
    """A SavedModel folder that cannot be read or written as asked."""


class VerificationError(RuntimeError):
    """The rewritten function is not the original: nothing of it should be used.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> try:
        ...     fast = bd.optimize(model, verify=True)
        ... except bd.rewriter.VerificationError as error:
        ...     print("a bug, please report it:", error)
    """


def describe(error: Exception) -> str:
    """The type of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def warn(text: str) -> None:
    """A RuntimeWarning at the line outside of this package that called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)
