"""Candidate changes for a gang that waits, one family a function: whether a candidate helps is left to the trial.

A family is a sequence of changes of one kind, the smallest first: the first that lets the gang start is said, and the
others are not tried.
"""
