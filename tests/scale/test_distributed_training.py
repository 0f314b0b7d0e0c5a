"""Two workers train as one does, and go on from a checkpoint after one has died."""

import json
import os
import re
import signal
import socket
import time

import pytest

EXAMPLE = "distributed_training.py"
STEPS = 24


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.fixture
def workers(start, tmp_path):
    """Starts so many workers of one cluster."""

    def run(count, folder, steps):
        cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(count)]}
        return [
            start(
                EXAMPLE,
                tmp_path / folder,
                steps,
                environ={
                    "TF_CONFIG": json.dumps(
                        {"cluster": cluster, "task": {"type": "worker", "index": i}}
                    ),
                    "TF_NUM_INTRAOP_THREADS": "1",
                },
            )
            for i in range(count)
        ]

    return run


def losses(worker):
    """Step -> loss."""
    return {
        int(step): float(loss)
        for step, loss in re.findall(r"^step (\d+) loss (\S+)$", worker.text, re.MULTILINE)
    }


def test_the_loss_is_that_of_one_worker_also_after_a_death(workers):
    (alone,) = workers(1, "alone", STEPS)
    assert alone.wait() == 0, alone.text
    wanted = losses(alone)
    assert list(wanted) == list(range(1, STEPS + 1)) and wanted[STEPS] < wanted[1] / 2

    # More steps than there will be: it is stopped behind the first checkpoint, of step 10.
    first, second = workers(2, "two", 10_000)
    end = time.monotonic() + 120
    while len(losses(second)) < 12:
        assert time.monotonic() < end and second.process.poll() is None, second.text
        time.sleep(0.05)
    os.kill(second.process.pid, signal.SIGKILL)
    assert first.wait() != 0, "a worker went on alone"
    until = losses(first)
    assert max(until) >= 12

    for each in (both := workers(2, "two", STEPS)):
        assert each.wait() == 0, each.text
    after = losses(both[0])
    assert losses(both[1]) == after
    assert min(after) % 10 == 1 and min(after) > 1, "it began anew"
    for step in range(1, min(max(until), STEPS) + 1):
        assert until[step] == pytest.approx(wanted[step], rel=1e-4), step
    for step in range(min(after), STEPS + 1):
        assert after[step] == pytest.approx(wanted[step], rel=1e-4), step
