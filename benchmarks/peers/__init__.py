"""The libraries that are compared, a table for each kind of work; `libraries` is the product's."""

from pathlib import Path

__path__.append(str(Path(__file__).resolve().parents[2] / "python" / "showing" / "peers"))
