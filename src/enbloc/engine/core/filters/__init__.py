"""Which nodes a task may go to (G6): one concern per module, each with its own table of cases in the tests.

There are two sorts. A *static* filter depends on the class and the node alone; its module has

    def check(cls: TaskClass, nodes: NodeTable, ...) -> Check | None

which returns `None` when the class has no such requirement. A check's `mask` is asked about given rows, so that a
changed node costs one row. A *stateful* filter (`stateful/`) depends on which pods are assigned where: ports, affinity,
spread, volumes. It keeps counts, which `add` and `remove` change as tasks are placed and taken back (exact inverses:
the transaction relies on it), and answers for all rows at once.

Both declare the cluster events that can make a node pass (`wakes_on`): what is not declared does not wake the gangs
that the filter rejected.
"""
