"""Folders of images through Ray Data, Beam and Spark. A dead process loses and doubles no row."""

import re

import numpy as np
import pyarrow.parquet as parquet
import pytest
import tensorflow as tf
from processes import EXAMPLES

# What each takes behind MODEL, IMAGES and OUT for two processes, what its progress looks like, and
# whether its runner here survives a dead process. Where it does not, it must fail as a whole.
_BEAM = ("--runner=FnApiRunner", "--direct_num_workers=2", "--direct_running_mode=multi_processing")
JOBS = {
    "ray_data_images.py": (("2",), r"MapBatches\(Classify\): \d+", True),
    "spark_images.py": (("2",), r"Stage \d+:.*\(\d+ \+ \d+\) / \d+", True),
    "beam_images.py": (_BEAM, r"process \d+: \d+ images", False),
}


@pytest.fixture(scope="module")
def wanted(models, images):
    """Name -> class and score, one image after the other, without tf_blockdnn."""
    run = tf.saved_model.load(str(models / "plain")).signatures["serving_default"]
    ((name, spec),) = run.structured_input_signature[1].items()
    rows = {}
    for path in images.iterdir():
        pixels = tf.io.decode_image(path.read_bytes(), 3, expand_animations=False)
        pixels = tf.image.resize(pixels, spec.shape[1:3])[None]
        scores = next(iter(run(**{name: pixels}).values()))[0].numpy()
        rows[path.name] = (scores.argmax(), scores.max())
    return rows


def check(out, wanted):
    """Every image has one row, and that is right."""
    rows = parquet.read_table(out).to_pydict()
    names = [path.rpartition("/")[2] for path in rows["path"]]
    assert len(names) == len(wanted) and sorted(names) == sorted(wanted)
    np.testing.assert_allclose(rows["score"], [wanted[n][1] for n in names], rtol=1e-4)
    right = [c == wanted[n][0] for c, n in zip(rows["class"], names, strict=True)]
    assert sum(right) >= 0.99 * len(right)  # Two classes may be level.


@pytest.mark.parametrize("example", JOBS)
def test_an_example_is_short(example):
    assert len((EXAMPLES / example).read_text().splitlines()) < 60


@pytest.mark.parametrize("example", JOBS)
def test_a_killed_worker_loses_and_doubles_no_row(example, models, images, wanted, start, tmp_path):
    arguments, progress, survives = JOBS[example]
    job = start(example, models / "fast", images, tmp_path / "out", *arguments)
    job.kill_a_worker(busy=0.8)
    code = job.wait()
    if survives:
        assert code == 0, job.text
    elif code != 0:
        assert not list((tmp_path / "out").glob("part*")), "a failed job left rows"
        job = start(example, models / "fast", images, tmp_path / "out", *arguments)
        assert job.wait() == 0, job.text
    check(tmp_path / "out", wanted)
    assert re.search(progress, job.text), job.text
