"""Backbones of KerasHub that hear: log-mel frames, and 16 ids of what was said."""

from __future__ import annotations

import keras_hub


def whisper():
    """Radford et al. 2022, tiny, on three seconds."""
    return keras_hub.models.WhisperBackbone(
        vocabulary_size=8000,
        num_layers=4,
        num_heads=6,
        hidden_dim=384,
        intermediate_dim=1536,
        max_encoder_sequence_length=300,
    )


BUILDERS = {"whisper": whisper}
SHAPES = {"whisper": (300, 80)}
