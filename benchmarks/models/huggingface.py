"""Hugging Face's TF models (requirements-huggingface.txt) with random weights, for huggingface.py.

Two layers of 4 heads each; nothing is downloaded. Their TensorFlow code runs on tf_keras.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf
import transformers

WORDS, LENGTH, SIDE = 1000, 64, 64
_BASE = {
    "vocab_size": WORDS,
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
}
_PICTURE = {key: _BASE[key] for key in _BASE if key != "vocab_size"} | {
    "image_size": SIDE,
    "patch_size": 8,
}
_BART = {
    "vocab_size": WORDS,
    "d_model": 256,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 512,
    "decoder_ffn_dim": 512,
}
_DEBERTA = {**_BASE, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}


@dataclasses.dataclass(frozen=True)
class Row:
    """A model.

    Attributes:
      model: its class; that of its configuration has the same name, without TF and Model.
      config: what its configuration is made of.
      inputs: what it reads: "ids" and "mask", of a decoder, too, "boxes", "picture" or "sound".
    """

    model: str
    config: dict
    inputs: tuple[str, ...] = ("ids", "mask")


ROWS = {
    "albert": Row("TFAlbertModel", {**_BASE, "embedding_size": 64}),
    "bart": Row("TFBartModel", _BART, ("ids", "mask", "decoder_ids")),
    "bert": Row("TFBertModel", _BASE),
    "clip-text": Row("TFCLIPTextModel", _BASE),
    "clip-vision": Row("TFCLIPVisionModel", _PICTURE, ("picture",)),
    "deberta": Row("TFDebertaModel", _DEBERTA),
    "deberta-v2": Row("TFDebertaV2Model", _DEBERTA),
    "deit": Row("TFDeiTModel", _PICTURE, ("picture",)),
    "distilbert": Row(
        "TFDistilBertModel",
        {"vocab_size": WORDS, "dim": 256, "n_layers": 2, "n_heads": 4, "hidden_dim": 512},
    ),
    "electra": Row("TFElectraModel", {**_BASE, "embedding_size": 128}),
    "esm": Row(
        "TFEsmModel",
        {**_BASE, "position_embedding_type": "rotary", "pad_token_id": 1, "mask_token_id": 4},
    ),
    "gpt2": Row("TFGPT2Model", {"vocab_size": WORDS, "n_embd": 256, "n_layer": 2, "n_head": 4}),
    "layoutlm": Row("TFLayoutLMModel", _BASE, ("ids", "mask", "boxes")),
    "roberta": Row("TFRobertaModel", _BASE),
    "roformer": Row("TFRoFormerModel", {**_BASE, "embedding_size": 256}),
    "segformer": Row(
        "TFSegformerModel",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [32, 64, 160, 256],
            "num_attention_heads": [1, 2, 5, 8],
        },
        ("picture",),
    ),
    "swin": Row(
        "TFSwinModel",
        {
            "image_size": 128,
            "patch_size": 4,
            "embed_dim": 32,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 8,
        },
        ("picture",),
    ),
    "t5": Row(
        "TFT5Model",
        {
            "vocab_size": WORDS,
            "d_model": 256,
            "d_kv": 64,
            "d_ff": 512,
            "num_layers": 2,
            "num_heads": 4,
        },
        ("ids", "mask", "decoder_ids"),
    ),
    "vit": Row("TFViTModel", _PICTURE, ("picture",)),
    "whisper": Row(
        "TFWhisperModel",
        {**_BART, "num_mel_bins": 80, "max_source_positions": 64, "pad_token_id": 0},
        ("sound", "decoder_ids"),
    ),
    "xlnet": Row(
        "TFXLNetModel",
        {"vocab_size": WORDS, "d_model": 256, "n_layer": 2, "n_head": 4, "d_inner": 512},
    ),
}
_NAMES = {
    "ids": "input_ids",
    "mask": "attention_mask",
    "boxes": "bbox",
    "picture": "pixel_values",
    "sound": "input_features",
    "decoder_ids": "decoder_input_ids",
}


class Model:
    """A model as a function of its inputs in their order."""

    def __init__(self, name: str):
        row = ROWS[name]
        config = row.model.removeprefix("TF").removesuffix("Model") + "Config"
        self.inputs = row.inputs
        self._config = getattr(transformers, config)(**row.config, use_cache=False)
        tf.keras.utils.set_random_seed(0)
        self._model = getattr(transformers, row.model)(self._config)
        self(*self.sample(1))
        _disturb(self._model)

    def __call__(self, *inputs):
        """Its states, float32."""
        named = {_NAMES[name]: x for name, x in zip(self.inputs, inputs, strict=True)}
        return self._model(**named, training=False).last_hidden_state

    def sample(self, batch: int) -> list[np.ndarray]:
        """Of each input. The last quarter of the first sequence is padded."""
        random = np.random.default_rng(0)
        side = getattr(self._config, "image_size", SIDE)
        mask = np.ones((batch, LENGTH), np.int32)
        mask[0, -LENGTH // 4 :] = 0
        of = {
            "ids": random.integers(5, WORDS, (batch, LENGTH), np.int32),
            "mask": mask,
            "boxes": np.sort(random.integers(0, 1000, (batch, LENGTH, 4), np.int32)),
            "picture": random.standard_normal((batch, 3, side, side), np.float32),
            "sound": random.standard_normal((batch, 80, 2 * LENGTH), np.float32),
            "decoder_ids": random.integers(5, WORDS, (batch, LENGTH // 2), np.int32),
        }
        return [of[name] for name in self.inputs]


def _disturb(model) -> None:
    """Moves biases and scales a little: zeros and ones would hide what is folded wrongly."""
    random = np.random.default_rng(0)
    for weight in model.weights:
        if len(weight.shape) == 1 and weight.dtype == tf.float32:
            weight.assign_add(random.normal(0, 0.02, weight.shape))
