"""What there is, in rows that a person reads at a glance: gangs, queues, nodes, and why a gang waits.

Pure: objects as the API lists them go in, rows come out. The terminal, the page and the commands all show these.
"""
