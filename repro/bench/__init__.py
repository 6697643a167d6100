"""Measures speed and memory: cells of the benchmark suite, their records and their report."""
