"""`enbloc up`: a cluster in this process, in real time: API, nodes, controllers and scheduler."""
