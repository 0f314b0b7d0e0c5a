"""Rules: formulas that are matched, tested and printed."""

from .found import Found, look
from .kinds import (
    Constant,
    Number,
    OneOf,
    PerChannel,
    Size,
    Sizes,
    Stored,
    Weights,
    Window,
    per_channel,
)
from .rule import Declined, Match, Rule
