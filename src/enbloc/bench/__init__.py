"""Benchmarks. Their figures are ratios to a reference measured in the same run, since machines are noisy."""
