"""Modules of benchmarks/ can be imported, as by its commands."""

import pathlib

import pytest


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """That folder."""
    folder = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    return folder
