"""Enbloc: gang scheduling for Kubernetes. Together, or not at all.

One pure engine, used three ways: live on a cluster, in an embedded cluster on a laptop, and in virtual time.
The packages are layered; imports point down only:

    cli > bench > install > up > web > sim > scenario > inspect > runtime > webhook > cluster > admission > controllers
    > engine > gangs > config > api > units

This module imports nothing, so that importing one package does not import the others.
"""

__version__ = "0.1.0"
