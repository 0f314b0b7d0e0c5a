"""The numbers hold on every instruction set that this machine has."""

import os
from pathlib import Path

import fresh
import pytest

import tf_blockdnn as bd

ISAS = ["generic", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "avx512_amx"]
if "avx_vnni" in Path("/proc/cpuinfo").read_text().split():  # which AVX-512 does not bring along
    ISAS.insert(2, "avx2_vnni")

_PROGRAM = """
import sys, pytest, tf_blockdnn as bd
assert bd.info()["isa"] == sys.argv[1]
sys.exit(pytest.main(["-q", "-x", "-m", "each_isa", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("isa", ISAS)
def test_cap(isa):
    """The tests marked each_isa pass in a process that is capped to `isa`.

    Of these thousands every 17th, for each set another 17th; with TF_BLOCKDNN_FULL_GRID=1 all.
    17 is no length of a list of parameters, so each kind is among them.
    """
    if "TF_BLOCKDNN_MAX_ISA" in os.environ:
        pytest.skip("this process is capped itself")
    if ISAS.index(isa) >= ISAS.index(bd.info()["isa"]):
        pytest.skip("what this process runs, or more than this machine has")
    capped = os.environ | {"TF_BLOCKDNN_MAX_ISA": isa}
    if "TF_BLOCKDNN_FULL_GRID" not in os.environ:
        capped["TF_BLOCKDNN_SAMPLE"] = f"{ISAS.index(isa)}/17"
    tests = Path(__file__).parents[1].rglob("test_*.py")
    marked = [path for path in tests if "mark.each_isa" in path.read_text()]
    run = fresh.run(_PROGRAM, isa, *sorted(marked), environ=capped, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
