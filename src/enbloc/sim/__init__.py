"""Virtual time: manifests in, what a cluster would do with them out.

simulation  the loop: all that is due, then every component reacts until nothing changes
clock       the virtual clock
statistics  waiting times, use of the nodes, what each gang did
result      the answer as JSON; `text` prints it for people
linting     what admission would reject, without running anything

Reading and playing scenario files, and the timeline, are in `scenario`; the cluster is `cluster.embedded`.
"""
