"""A cluster on this machine, in real time: `enbloc up`. API, nodes, controllers and scheduler in one process."""
