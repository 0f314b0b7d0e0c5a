"""Errors that people can put right."""


class UserError(ValueError):
    """What the user gave is wrong; the message is one line that names it and a remedy."""


class SavedModelError(UserError):
    """A SavedModel folder that cannot be read or written as asked."""


class VerificationError(RuntimeError):
    """The rewritten function is not the original: nothing of it should be used.

    Example:
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> try:
        ...     fast = bd.optimize(model, verify="numbers")
        ... except bd.rewriter.VerificationError as error:
        ...     print("a bug, please report it:", error)
    """
