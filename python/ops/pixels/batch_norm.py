"""Batch normalisation in training and in inference, called by layers alone."""

from ..record import Record


class BatchNorm(Record, title="batch normalisation"):
    """By the moments of the batch, which it returns, too."""


class FoldBatchNorm(Record, title="folded batch normalisation"):
    """By known moments, folded into the weights and the bias of a convolution."""
