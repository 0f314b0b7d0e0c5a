"""Measures text generation of KerasHub's decoders, with weights of 32, 16, 8 and 4 bits, in turns.

    pip install -r benchmarks/requirements-kerashub.txt
    python benchmarks/decoders.py [--models gpt2,llama,gemma] [--rounds 3] [--tokens 16]

Networks are as wide as published, with random weights: GPT-2 whole, of TinyLlama and Gemma 2B the
number of layers and words that `_MODELS` says. A token's time is what `generate` takes less where
`--tokens` tokens more are in the prompt, over their number: KerasHub computes the prompt in the
room of all tokens, so that the rest of a call is the same. Beside it stands the time that reading
the weights of a token takes: their bytes by the fastest of several reductions over 512 MiB. The
last column is the share of tokens that are those of float32: random weights leave the best word
little ahead of the next.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from measuring.turns import among
from rich.console import Console
from rich.table import Table

import tf_blockdnn as bd

_PROMPT = 8
_BYTES = {
    None: 4,
    "bf16-weights": 2,
    "int8-weights": 1,
    "int4-weights": 0.5625,
}  # 4 + 64 / 128 bits
_MODELS: dict[str, Callable] = {
    "gpt2": lambda length: keras_hub.models.GPT2CausalLM(
        backbone=keras_hub.models.GPT2Backbone(
            vocabulary_size=50257,
            num_layers=12,
            num_heads=12,
            hidden_dim=768,
            intermediate_dim=3072,
            max_sequence_length=length,
        )
    ),
    "llama": lambda length: keras_hub.models.LlamaCausalLM(
        backbone=keras_hub.models.LlamaBackbone(
            vocabulary_size=32000,
            num_layers=4,  # of 22
            num_query_heads=32,
            num_key_value_heads=4,
            hidden_dim=2048,
            intermediate_dim=5632,
        )
    ),
    "gemma": lambda length: keras_hub.models.GemmaCausalLM(
        backbone=keras_hub.models.GemmaBackbone(
            vocabulary_size=32000,  # of 256,000
            num_layers=2,  # of 18
            num_query_heads=8,
            num_key_value_heads=1,
            hidden_dim=2048,
            intermediate_dim=32768,
            head_dim=256,
        )
    ),
}


def main() -> None:
    """Parses the arguments, measures and prints a table for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=among(_MODELS), default=list(_MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=16, help="that a round generates")
    options = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    speed = _reading_speed()
    for name in options.models:
        print_table(name, measure(name, options.rounds, options.tokens), speed)


def measure(name: str, rounds: int, tokens: int) -> dict[str, dict]:
    """{TensorFlow or a precision: {"ms": a token's, least of the rounds, "bytes", "same"}}."""
    keras.utils.set_random_seed(1)
    task = _MODELS[name](_PROMPT + 1 + tokens)
    task.preprocessor = None
    task.compile(sampler="greedy")
    weights = _read_by_a_token(task)
    generators = {"TensorFlow": task}
    for precision in _BYTES:
        generators[precision or "float32"] = bd.optimize(task, precision=precision)
    prompts = {more: _prompt(tokens, more) for more in (1, 1 + tokens)}
    written = {}
    for who, generator in generators.items():
        for prompt in prompts.values():
            ids = generator.generate(prompt, stop_token_ids=None)["token_ids"]
            written[who] = np.asarray(ids)
    seconds = {who: {more: [] for more in prompts} for who in generators}
    for _ in range(rounds):
        for who, generator in generators.items():
            for more, prompt in prompts.items():
                start = time.perf_counter()
                generator.generate(prompt, stop_token_ids=None)
                seconds[who][more].append(time.perf_counter() - start)
    return {
        who: {
            "ms": 1e3 * (min(times[1 + tokens]) - min(times[1])) / tokens,
            "bytes": weights * _BYTES.get(who, 4),
            "same": float((written[who] == written["float32"])[:, _PROMPT:].mean()),
        }
        for who, times in seconds.items()
    }


def print_table(name: str, rows: dict[str, dict], speed: float) -> None:
    """A row for each way of generating; `speed` is of reading, in bytes a second."""
    table = Table(title=f"{name}: milliseconds of a token")
    for column in ("weights", "ms", "of float32", "to read them, ms", "ratio", "same tokens"):
        table.add_column(column, justify="right")
    for who, row in rows.items():
        reading = 1e3 * row["bytes"] / speed
        ratios = (row["ms"] / rows["float32"]["ms"], row["ms"] / reading)
        table.add_row(
            who,
            f"{row['ms']:.2f}",
            f"{ratios[0]:.3f}",
            f"{reading:.2f}",
            f"{ratios[1]:.2f}",
            f"{row['same']:.0%}",
        )
    Console(width=100).print(table)


def _prompt(tokens: int, more: int) -> dict[str, np.ndarray]:
    """Room for one token and `tokens` more behind the prompt; the last `more` are empty."""
    ids = np.random.default_rng(0).integers(1, 32000, (1, _PROMPT + 1 + tokens), np.int32)
    ids[:, -more:] = 0
    return {"token_ids": ids, "padding_mask": (ids > 0).astype(np.int32)}


def _read_by_a_token(task) -> int:
    """Count of all weights but embeddings that are not tied, of which a token reads one row."""
    embedding = task.backbone.token_embedding
    positions = getattr(task.backbone, "position_embedding", None)
    aside = [] if embedding.tie_weights else [embedding.embeddings]
    aside += [] if positions is None else positions.weights
    return task.count_params() - sum(int(np.prod(weight.shape)) for weight in aside)


def _reading_speed() -> float:
    """Bytes a second of TensorFlow's sum over more than caches hold."""
    numbers = tf.ones((1 << 17, 1 << 10))
    total = tf.function(lambda: tf.reduce_max(numbers, axis=1))
    total()
    best = np.inf
    for _ in range(8):
        start = time.perf_counter()
        total()
        best = min(best, time.perf_counter() - start)
    return 4 * (1 << 27) / best


if __name__ == "__main__":
    main()
