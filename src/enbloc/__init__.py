"""Enbloc: gang scheduling for Kubernetes. Together, or not at all.

One pure engine, used three ways: live on a cluster, in an embedded cluster on a laptop, and in virtual time.
The rooms below this package are stacked; imports point down only:

    cli > install > web > sim > runtime > webhook > cluster > admission > controllers > engine > gangs > config > api
    > units

This module imports nothing, so that whoever needs one room pays for that room alone.
"""

__version__ = "0.1.0"
