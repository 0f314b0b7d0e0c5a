"""Backbones of KerasHub that hear: log-mel frames, and 16 ids of what was said."""

from __future__ import annotations

import keras
import keras_hub


def whisper(frames: int = 300):
    """Radford et al. 2022, tiny, on three seconds."""
    return keras_hub.models.WhisperBackbone(
        vocabulary_size=8000,
        num_layers=4,
        num_heads=6,
        hidden_dim=384,
        intermediate_dim=1536,
        max_encoder_sequence_length=frames,
    )


def whisperencoder():
    """Its encoder alone, on thirty seconds."""
    whole = whisper(3000)
    return keras.Model(whole.input["encoder_features"], whole.output["encoder_sequence_output"])


BUILDERS = {"whisper": whisper, "whisperencoder": whisperencoder}
SHAPES = {"whisper": (300, 80), "whisperencoder": (3000, 80)}
