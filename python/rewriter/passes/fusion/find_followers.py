"""Finds the element-wise idioms, once, before anything absorbs them."""

from ....graph import Body
from ...context import Context
from ...followers import Followers


def find_followers(body: Body, context: Context) -> None:
    """Recognises the element-wise idioms, such as batch normalisation and activations."""
    context.followers = Followers(body)
