"""The shuffle benchmark: what it measures is right, and what it says about it."""

import numpy as np
import pytest
from rich.console import Console


@pytest.mark.parametrize(
    "peer,layouts",
    [("tf_blockdnn", ["NHWC", "NCHW", "nChw16c", "nChw8c"]), ("tensorflow", ["NHWC", "NCHW"])],
)
def test_every_case_is_checked_and_timed(benchmarks, peer, layouts):
    from measuring.workers import Workers
    from peers.shuffle import PEERS

    image = np.arange(1 * 2 * 3 * 12, dtype=np.float32).reshape(1, 2, 3, 12)
    with Workers(benchmarks, "peers.shuffle", {"image": image}, threads=1, burst=3) as workers:
        workers.start(peer, PEERS[peer], "3,4")
        worker = workers.running[peer]
        kinds = ("call", "session", "chain")
        assert worker.about["cases"] == [
            f"{layout}/{group}/{kind}" for group in (3, 4) for layout in layouts for kind in kinds
        ]
        assert len(worker("NHWC/3/call")) == 3
        (milliseconds,) = worker("NCHW/4/session", 1)
        assert milliseconds > 0


def test_a_wrong_result_is_not_timed():
    from peers import shuffle

    image = np.arange(12.0).reshape(1, 1, 1, 12)
    check = shuffle._checker(np.asarray, shuffle._expected(image, 3))
    cases = {}
    with pytest.raises(ValueError, match="NHWC/3/call: not the shuffle that is defined"):
        shuffle._add(cases, "NHWC/3", {"call": lambda: image}, check)
    assert not cases


def test_table():
    import run_shuffle
    from measuring.timing import Timing

    timings = {
        "tf_blockdnn/NCHW/3/call": Timing((0.050, 0.052)),
        "tf_blockdnn/NCHW/3/chain": Timing((3.0, 3.0)),
        "torch/NCHW/3/call": Timing((0.040, 0.042)),
        "tf_blockdnn/NCHW/3/session": Timing((0.038, 0.040)),
    }
    console = Console(width=160)
    with console.capture() as capture:
        console.print(run_shuffle.table(timings, [1, 56, 56, 240], 3))
    rows = [line.split("│") for line in capture.get().splitlines() if "NCHW" in line]
    cells = {row[2].strip(): [cell.strip() for cell in row[3:-1]] for row in rows}
    assert cells["call"] == ["50.0 (51.0)", "40.0 (41.0)", "", "1.24"]
    assert cells["session"] == ["38.0 (39.0)", "40.0 (41.0)", "", "0.95"]
    assert cells["chain"] == ["30.0 (30.0)", "", "", ""]
