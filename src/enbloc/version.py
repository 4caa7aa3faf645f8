"""The version of this project, for what prints it. The same is in `pyproject.toml`; a test compares them."""

__version__ = "0.1.0"
