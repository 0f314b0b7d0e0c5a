"""TF_BLOCKDNN_CHECK_TAILS=1: an op with a broken tail fails and names it; healthy networks run."""

import os

import checked_tails
import fresh
from make_call import eagerly

from tf_blockdnn.python.tensorflow_private import registered_ops


def test_checked():
    """checked_tails.py passes in a process with the checks on."""
    program = "import sys, pytest; sys.exit(pytest.main(['-q', '-x', sys.argv[1]]))"
    environ = os.environ | {checked_tails.SWITCH: "1"}
    run = fresh.run(program, checked_tails.__file__, environ=environ, check=False)
    assert run.returncode == 0, run.stdout[-4000:]


@checked_tails.each_input
def test_off_by_default(op, name, dtype):
    """The same calls run, whatever lies in the tails."""
    eagerly(checked_tails.drawn(op, name, dtype)[1])


def test_every_op_is_there():
    ops = set(registered_ops("Blockdnn"))
    without_tails = {"BlockdnnFollow", "BlockdnnThreads"}
    without_tails |= {"BlockdnnRegion"}  # what it runs checks its own
    # Plain tensors.
    without_tails |= {"BlockdnnPackedMatmul", "BlockdnnRnn", "BlockdnnRnnGrad"}
    without_tails |= {"BlockdnnAttention", "BlockdnnFoldBatchNorm", "BlockdnnUpdateSlice"}
    without_tails |= {"BlockdnnJoin", "BlockdnnInnerProduct", "BlockdnnSoftmax"}
    without_tails |= {"BlockdnnSnapshot", "BlockdnnReadWeights"}
    without_tails |= {"BlockdnnWeightsVariable", "BlockdnnLoadWeights"}
    assert ops - without_tails == set(checked_tails.INPUTS)
