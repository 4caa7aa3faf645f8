"""Simulated kubelets: nodes that run pods as annotations script them."""
