"""Enbloc from Python: what `import enbloc` offers, for notebooks, scripts and tests.

    inputs         files, directories and objects into a scenario; a config from a file, a mapping or a policy's name
    simulation     `simulate` and its `Result`
    trace_replay   `replay` and its `Replays`
    cluster        `Cluster`: what `enbloc up` serves, in this process
    plot           a result as a picture
    pytest_plugin  the fixture `enbloc_cluster`

Everything is done by the rooms below; here are only Python's types around it.
"""
