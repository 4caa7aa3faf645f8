"""A whole cluster in one process: `api` (API server), `http` (its HTTP front), `nodes` and `process` (its kubelets).

`nodes` simulates pods on the store's clock; `process` runs them as processes of this machine.
"""
