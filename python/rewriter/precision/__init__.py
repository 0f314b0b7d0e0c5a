"""Low precision: which numbers stand for a tensor, and what that costs."""
