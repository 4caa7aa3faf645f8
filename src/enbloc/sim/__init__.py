"""Virtual time: manifests in, what would happen on a cluster out.

documents   files into documents, bounded, every fault with its place
scenario    documents into happenings: objects that come and go, Steps
world       the embedded cluster that it happens in
simulation  the loop: all that is due, then everybody reacts until nothing changes
timeline    what happened, read off the API
statistics  waiting times, use of the nodes, what each gang did
result      the answer as JSON; `text` tells it to people
linting     what admission would say, without running anything
"""
