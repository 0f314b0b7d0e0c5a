"""Timing, comparison and tables of what computes the same; nothing here needs TensorFlow."""
