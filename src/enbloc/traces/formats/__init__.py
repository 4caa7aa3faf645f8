"""Formats of workload traces, one a module: text in, `trace.Line`s out."""
