"""Benchmarks, from a clone: `python -m benchmarks NAME`. Their figures are ratios to a reference measured in the same
run, since machines are noisy."""
