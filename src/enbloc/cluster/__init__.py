"""Where objects live: the port `Cluster`, and the clusters behind it."""
