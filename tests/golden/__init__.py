"""What is decided and said in some 1,290 scenarios, as digests: the net under changes that are to change nothing.

`scenarios` lists what is played: stories, examples, what the oracle found, and seeds of each of its layers. `playing`
plays one and writes down what happened; `digests` keeps a line for each. `make golden` rewrites the lines,
`test_golden` compares them, and `make golden-diff BASE=REV` shows what differs from another revision. CONTRIBUTING.md
says when.
"""
