"""The specification, executable: a second scheduler, naive on purpose, written from `docs/semantics.md` rule by rule.

Every cycle it reads all objects anew and follows the rules in plain loops over plain dictionaries. It keeps nothing
between cycles but what a rule says is remembered (`memory`). Its value is that it is independent of the engine: it
imports nothing from it, and everything that it shares with the product comes through `adapter`.
"""
