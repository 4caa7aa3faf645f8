"""Gangs: the one model, and the dialects (APIs) that declare gangs, one module each."""
