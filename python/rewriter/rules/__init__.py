"""Rules: formulas that are matched, tested and printed."""

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
from .replacement import Idiom, Replacement, look
from .rule import Declined, Match, Rule, require
