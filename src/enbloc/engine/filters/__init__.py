"""Where a task may go (G6): one concern a file, each with its own table of cases in the tests.

Two sorts. A *standing* predicate depends on the class and the node alone; its module has

    def check(cls: TaskClass, nodes: NodeTable, ...) -> Check | None

which returns `None` when the class asks for nothing of the kind. A check's `mask` answers for the rows it is given, so
that a changed node costs one row. A *moving* predicate depends on what else is placed: ports, affinity, spread. It
keeps counts, which `add` and `remove` change as tasks are placed and taken back (exact inverses: the transaction relies
on it), and answers for all rows at once.
"""
