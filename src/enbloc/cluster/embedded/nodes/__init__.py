"""Simulated kubelets: nodes that run pods as annotations script them; and what every node runtime shares."""
