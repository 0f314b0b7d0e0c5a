"""The colours of memory, from its start to its end."""

# Dark blue, teal, green, yellow: the lightness grows all the way, so that a print without colours
# and eyes that see no red and green read the same order.
_STOPS = ((38, 42, 110), (28, 98, 142), (24, 150, 138), (104, 194, 96), (250, 228, 60))


def ramp(shade: float) -> tuple[int, int, int]:
    """Red, green, blue of the place `shade` of the memory, 0 to 1."""
    place = min(max(shade, 0.0), 1.0) * (len(_STOPS) - 1)
    i = min(int(place), len(_STOPS) - 2)
    return tuple(
        round(a + (b - a) * (place - i)) for a, b in zip(_STOPS[i], _STOPS[i + 1], strict=True)
    )


def ink(background: tuple[int, int, int]) -> tuple[int, int, int]:
    """Black or white, whichever can be read on `background`."""
    red, green, blue = background
    return (0, 0, 0) if 0.3 * red + 0.59 * green + 0.11 * blue > 135 else (255, 255, 255)
