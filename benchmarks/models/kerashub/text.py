"""Backbones of KerasHub that read ids [N, 128]: `BUILDERS`.

They are as wide as the smallest one that is published and four layers deep, with 8,000 words; BERT,
MiniLM and GPT-2 are whole, and what is wider than others has fewer layers.
"""

from __future__ import annotations

import functools

import keras_hub

WORDS = 8000
_BASE = {"num_layers": 4, "num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}
_ROWS = {
    "albert": ("Albert", {**_BASE, "embedding_dim": 128}),
    "bart": ("Bart", _BASE),
    "bert": ("Bert", {**_BASE, "num_layers": 12, "vocabulary_size": 30522}),
    "bloom": ("Bloom", {**_BASE, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096}),
    "deberta": ("DebertaV3", _BASE),
    "distilbert": ("DistilBert", _BASE),
    "edrec": (
        "EdRec",
        {
            "vocab_size": WORDS,
            "num_layers_enc": 2,
            "num_layers_dec": 2,
            "hidden_dim": 512,
            "intermediate_dim": 2048,
            "num_heads": 8,
        },
    ),
    "electra": (
        "Electra",
        {
            "vocab_size": WORDS,
            "num_layers": 4,
            "num_heads": 4,
            "hidden_dim": 256,
            "embedding_dim": 128,
            "intermediate_dim": 1024,
        },
    ),
    "esm": ("ESM", {**_BASE, "num_heads": 20, "hidden_dim": 320, "intermediate_dim": 1280}),
    "falcon": (
        "Falcon",
        {
            "num_layers": 1,
            "num_attention_heads": 32,
            "hidden_dim": 2048,
            "intermediate_dim": 8192,
        },
    ),
    "fnet": ("FNet", {key: _BASE[key] for key in _BASE if key != "num_heads"}),
    "gemma": (
        "Gemma",
        {
            "num_layers": 4,
            "num_query_heads": 8,
            "num_key_value_heads": 1,
            "hidden_dim": 512,
            "intermediate_dim": 4096,
            "head_dim": 256,
        },
    ),
    "gemma3": (
        "Gemma3",
        {
            "image_size": 896,
            "num_layers": 4,
            "num_query_heads": 4,
            "num_key_value_heads": 1,
            "hidden_dim": 640,
            "intermediate_dim": 4096,
            "head_dim": 256,
            "use_sliding_window_attention": True,
        },
    ),
    "gpt2": ("GPT2", {**_BASE, "num_layers": 12, "vocabulary_size": 50257}),
    "gptneox": ("GPTNeoX", {**_BASE, "num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048}),
    "llama": (
        "Llama",
        {
            "num_layers": 4,
            "num_query_heads": 16,
            "num_key_value_heads": 16,
            "hidden_dim": 1024,
            "intermediate_dim": 2816,
        },
    ),
    "llama3": (
        "Llama3",
        {
            "num_layers": 4,
            "num_query_heads": 16,
            "num_key_value_heads": 8,
            "hidden_dim": 1024,
            "intermediate_dim": 4096,
        },
    ),
    "minilm": (
        "Bert",
        {
            "vocabulary_size": 30522,
            "num_layers": 12,
            "num_heads": 12,
            "hidden_dim": 384,
            "intermediate_dim": 1536,
        },
    ),
    "mistral": (
        "Mistral",
        {
            "num_layers": 4,
            "num_query_heads": 16,
            "num_key_value_heads": 8,
            "hidden_dim": 1024,
            "intermediate_dim": 3584,
        },
    ),
    "mixtral": (
        "Mixtral",
        {
            "num_layers": 2,
            "num_query_heads": 8,
            "num_key_value_heads": 4,
            "hidden_dim": 512,
            "intermediate_dim": 1024,
            "num_experts": 4,
        },
    ),
    "opt": ("OPT", _BASE),
    "phi3": (
        "Phi3",
        {
            "num_layers": 4,
            "num_query_heads": 16,
            "num_key_value_heads": 16,
            "hidden_dim": 1024,
            "intermediate_dim": 2736,
        },
    ),
    "qwen2": (
        "Qwen2",
        {
            "num_layers": 4,
            "num_query_heads": 14,
            "num_key_value_heads": 2,
            "hidden_dim": 896,
            "intermediate_dim": 4864,
        },
    ),
    "qwen3": (
        "Qwen3",
        {
            "num_layers": 4,
            "num_query_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "hidden_dim": 1024,
            "intermediate_dim": 3072,
        },
    ),
    "roberta": ("Roberta", _BASE),
    "roformer": (
        "RoformerV2",
        {**_BASE, "num_heads": 6, "hidden_dim": 384, "intermediate_dim": 1536, "head_size": 64},
    ),
    "rwkv7": (
        "RWKV7",
        {"hidden_size": 256, "head_size": 64, "num_layers": 2, "intermediate_dim": 1024},
    ),
    "smollm3": (
        "SmolLM3",
        {
            "num_layers": 4,
            "hidden_dim": 576,
            "intermediate_dim": 1536,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "rope_layer_enabled_list": [True] * 4,
            "layer_types": ["full_attention"] * 4,
            "mlp_bias": False,
            "layer_norm_epsilon": 1e-5,
            "max_position_embeddings": 2048,
            "rope_theta": 10000.0,
            "partial_rotary_factor": 1.0,
        },
    ),
    "t5": (
        "T5",
        {
            "num_layers": 4,
            "num_heads": 8,
            "hidden_dim": 512,
            "intermediate_dim": 2048,
            "use_gated_activation": False,
        },
    ),
    "xlmroberta": ("XLMRoberta", _BASE),
    "xlnet": ("XLNet", _BASE),
}


def _build(name: str):
    kind, options = _ROWS[name]
    if "vocab_size" not in options:
        options = {"vocabulary_size": WORDS, **options}
    return getattr(keras_hub.models, f"{kind}Backbone")(**options)


BUILDERS = {name: functools.partial(_build, name) for name in _ROWS}
SHAPES = {**dict.fromkeys(BUILDERS, (128,)), "minilm": (32,)}
