"""benchmarks/gemm.py: the rows of its table, and that libraries compute the same."""

import sys

import numpy as np
import pytest


@pytest.fixture
def gemm():
    import gemm

    return gemm


def test_the_table_says_how_fast_it_is(gemm):
    times = {"tf_blockdnn": 1.0, "onednn": 1.5, "openblas": 4.0}
    row = {"shape": "4/1000/1000"} | {name: {"min_ms": time} for name, time in times.items()}
    shown = gemm.table([row], busy=0.0)
    assert [column._cells[0] for column in shown.columns] == [
        "4/1000/1000",
        "8",  # 2 * 4e6 operations in 1 ms
        "5",
        "2",
        "4",  # 4 MB in 1 ms
        "1.50x",
    ]


def test_numpy_and_ours_agree_and_another_product_is_not_measured(gemm):
    class Options:
        threads = 1

    models = {peer: ("", sys.executable) for peer in ("tf_blockdnn", "openblas")}
    cases = {"cases": np.array(["3/5/7"])}
    with gemm.turns.start("peers.gemm", gemm.PEERS, cases, Options, models) as workers:
        workers.check(gemm.OURS, lambda peer: gemm.TOLERANCE)
        gemm.turns.require(workers)
        assert all(len(worker("3/5/7", 2)) == 2 for worker in workers.running.values())
        workers.problems["openblas"] = "other outputs"
        with pytest.raises(gemm.turns.WorkerError, match="openblas: other outputs"):
            gemm.turns.require(workers)
