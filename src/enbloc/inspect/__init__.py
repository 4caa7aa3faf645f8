"""Views of a cluster: gangs, queues and nodes in rows, and why a gang waits.

Pure functions of listed objects. The terminal view, the web page and the commands all show these rows.
"""
