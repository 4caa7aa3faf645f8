"""The embedded cluster over HTTP, as a Kubernetes API server would serve it: `facade` is the way in.

It adds nothing to what the store does: it reads requests, asks the store, and writes the answers that kubectl and other
clients expect. Everything runs on one event loop, the one that owns the store.
"""
