"""Wrappers of the ops, one file a family."""
