"""The embedded cluster over HTTP, as a Kubernetes API server serves it: requests enter in `facade`.

It adds nothing to what the store does: it parses requests, calls the store, and writes the answers that kubectl and
other clients expect. Everything runs on one event loop, the one that owns the store.
"""
