"""Policies that can be chosen in the config: one plugin a file, each a plain class (see `plugin`)."""
