"""What the benchmarks share: environments and files, processes that take turns, tables."""
