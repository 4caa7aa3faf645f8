"""A whole cluster in one process: `api` (API server), `http` (its HTTP front), `nodes` (its kubelets, which simulate
pods on the store's clock).
"""
