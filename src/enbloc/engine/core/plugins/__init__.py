"""Policies that the config selects: one plugin per module, each a plain class (see `plugin`)."""
