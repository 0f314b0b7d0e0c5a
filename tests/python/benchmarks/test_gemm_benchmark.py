"""benchmarks/gemm.py: the rows of its table, and that libraries compute the same."""

import pathlib
import sys

import numpy as np
import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def gemm(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gemm

    return gemm


class Outputs:
    """A worker that has one result."""

    def __init__(self, *values):
        self.values = np.array(values, np.float32)

    def outputs(self):
        return [self.values]


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


def test_another_product_is_not_measured(gemm):
    same = {"tf_blockdnn": Outputs(1, 2), "onednn": Outputs(1, 2.0005)}
    gemm.turns.check_same(same, "product", gemm.TOLERANCE)
    with pytest.raises(gemm.turns.WorkerError, match="mkl computes another product"):
        gemm.turns.check_same(same | {"mkl": Outputs(1, 2.1)}, "product", gemm.TOLERANCE)


def test_numpy_and_ours_agree(gemm, tmp_path):
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, cases=np.array(["3/5/7"]))
    workers = {}
    try:
        for peer in ("tf_blockdnn", "openblas"):
            options = {"threads": 1, "burst": 2, "table": "peers.gemm"}
            workers[peer] = gemm.Worker(peer, sys.executable, "", inputs, tmp_path, **options)
        gemm.turns.check_same(workers, "product", gemm.TOLERANCE)
        assert all(len(worker("3/5/7")) == 2 for worker in workers.values())
    finally:
        for worker in workers.values():
            worker.close()
