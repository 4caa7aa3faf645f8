"""A whole cluster in this process: API machinery (`store`) and nodes that play pods (`nodes`)."""
