"""Backbones of KerasHub that read ids [N, 128]: `BUILDERS`.

They are as wide as the smallest one that is published and four layers deep, with 8,000 words; BERT,
MiniLM and GPT-2 are whole, and what is wider than others has fewer layers.
"""

from __future__ import annotations

import functools

import keras_hub

WORDS = 8000


def _sizes(layers=4, heads=12, width=768, inner=3072, **more) -> dict:
    return dict(
        num_layers=layers, num_heads=heads, hidden_dim=width, intermediate_dim=inner, **more
    )


def _grouped(heads, groups, width, inner, layers=4, **more) -> dict:
    """Heads of queries that share those of keys and values."""
    sizes = dict(num_query_heads=heads, num_key_value_heads=groups, **more)
    return dict(num_layers=layers, hidden_dim=width, intermediate_dim=inner) | sizes


_BERT = 30522  # words
_ROWS = {
    "albert": ("Albert", _sizes(embedding_dim=128)),
    "bart": ("Bart", _sizes()),
    "bert": ("Bert", _sizes(12, vocabulary_size=_BERT)),
    "bloom": ("Bloom", _sizes(4, 16, 1024, 4096)),
    "deberta": ("DebertaV3", _sizes()),
    "distilbert": ("DistilBert", _sizes()),
    "edrec": (
        "EdRec",
        dict(
            vocab_size=WORDS,
            num_layers_enc=2,
            num_layers_dec=2,
            hidden_dim=512,
            intermediate_dim=2048,
            num_heads=8,
        ),
    ),
    "electra": ("Electra", _sizes(4, 4, 256, 1024, vocab_size=WORDS, embedding_dim=128)),
    "esm": ("ESM", _sizes(4, 20, 320, 1280)),
    "falcon": (
        "Falcon",
        dict(num_layers=1, num_attention_heads=32, hidden_dim=2048, intermediate_dim=8192),
    ),
    "fnet": ("FNet", dict(num_layers=4, hidden_dim=768, intermediate_dim=3072)),
    "gemma": ("Gemma", _grouped(8, 1, 512, 4096, head_dim=256)),
    "gemma3": (
        "Gemma3",
        _grouped(
            *(4, 1, 640, 4096), head_dim=256, image_size=896, use_sliding_window_attention=True
        ),
    ),
    "gpt2": ("GPT2", _sizes(12, vocabulary_size=50257)),
    "gptneox": ("GPTNeoX", _sizes(4, 8, 512, 2048)),
    "llama": ("Llama", _grouped(16, 16, 1024, 2816)),
    "llama3": ("Llama3", _grouped(16, 8, 1024, 4096)),
    "minilm": ("Bert", _sizes(12, 12, 384, 1536, vocabulary_size=_BERT)),
    "mistral": ("Mistral", _grouped(16, 8, 1024, 3584)),
    "mixtral": ("Mixtral", _grouped(8, 4, 512, 1024, 2, num_experts=4)),
    "opt": ("OPT", _sizes()),
    "phi3": ("Phi3", _grouped(16, 16, 1024, 2736)),
    "qwen2": ("Qwen2", _grouped(14, 2, 896, 4864)),
    "qwen3": ("Qwen3", _grouped(16, 8, 1024, 3072, head_dim=128)),
    "roberta": ("Roberta", _sizes()),
    "roformer": ("RoformerV2", _sizes(4, 6, 384, 1536, head_size=64)),
    "rwkv7": ("RWKV7", dict(hidden_size=256, head_size=64, num_layers=2, intermediate_dim=1024)),
    "smollm3": (
        "SmolLM3",
        dict(
            num_layers=4,
            hidden_dim=576,
            intermediate_dim=1536,
            num_attention_heads=9,
            num_key_value_heads=3,
            attention_bias=False,
            attention_dropout=0.0,
            rope_layer_enabled_list=[True] * 4,
            layer_types=["full_attention"] * 4,
            mlp_bias=False,
            layer_norm_epsilon=1e-5,
            max_position_embeddings=2048,
            rope_theta=10000.0,
            partial_rotary_factor=1.0,
        ),
    ),
    "t5": ("T5", _sizes(4, 8, 512, 2048, use_gated_activation=False)),
    "xlmroberta": ("XLMRoberta", _sizes()),
    "xlnet": ("XLNet", _sizes()),
}


def _build(name: str):
    kind, options = _ROWS[name]
    if "vocab_size" not in options:
        options = {"vocabulary_size": WORDS, **options}
    return getattr(keras_hub.models, f"{kind}Backbone")(**options)


BUILDERS = {name: functools.partial(_build, name) for name in _ROWS}
SHAPES = {**dict.fromkeys(BUILDERS, (128,)), "minilm": (32,)}
