"""Pictures of a memory layout, in a terminal and as PNG."""
