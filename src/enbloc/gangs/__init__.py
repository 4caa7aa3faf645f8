"""Gangs: the one model, and the dialects in which people write gangs down, each read into it by a module of its own."""
