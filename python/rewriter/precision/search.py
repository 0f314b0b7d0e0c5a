"""Finds the layers that lose most, by what outputs lose where parts have low precision."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice


def worst_first(
    layers: Sequence[str], lost_by: Callable[[Sequence[str]], float], least: float = 0.0
) -> Iterator[tuple[str, float]]:
    """(layer, what is lost where it alone has low precision) from the one that loses most.

    Errors of layers are nearly independent, so the energies that they leave at an output add up,
    and no layer loses more than a part of the network that it is in. So only the part that loses
    most is cut in halves, until it is one layer, and of two halves one is tried: where few layers
    lose much, few are tried.

    Args:
        layers: in the order in which they run.
        lost_by: the energy of what is lost where these alone have low precision.
        least: the search ends where all parts lose less.
    """
    parts = [(-lost_by(layers), 0, list(layers))] if layers else []
    while parts:  # Each turn yields a layer or cuts a part in two, none of which is empty.
        lost, start, part = heapq.heappop(parts)
        if -lost < least:
            return
        if len(part) == 1:
            yield part[0], -lost
            continue
        half = len(part) // 2
        of_half = lost_by(part[:half])
        rest = -lost - of_half
        if not rest > 0:  # They add up nearly only, and infinities do not.
            rest = lost_by(part[half:])
        heapq.heappush(parts, (-of_half, start, part[:half]))
        heapq.heappush(parts, (-rest, start + half, part[half:]))


def fewest(worst: Iterator[str], attempt: Callable, is_enough: Callable):
    """The attempt that leaves fewest of those layers float32 and is enough, else all of them.

    Their number doubles until it is enough or `worst` ends; then bisection gives it.

    Args:
        worst: the layers, the one that loses most first.
        attempt: attempt(layers) -> what leaving them float32 makes.
    """
    left: list[str] = []
    few, many = 0, 1
    while True:
        left += islice(worst, many - len(left))
        best = attempt(left)
        if is_enough(best) or len(left) < many:
            break
        few, many = many, 2 * many
    many = len(left)
    while few + 1 < many:
        count = (few + many) // 2
        tried = attempt(left[:count])
        if is_enough(tried):
            many, best = count, tried
        else:
            few = count
    return best
