"""Errors that people can put right."""


class UserError(ValueError):
    """What the user gave is wrong; the message is one line that names it and a remedy."""


class SavedModelError(UserError):
    """A SavedModel folder that cannot be read or written as asked."""
