"""Admission over the wire: a real API server asks, the rules in `admission` answer.

The rules are those of `enbloc lint` and of the embedded cluster. In here is only what a network adds: reviews and
patches (`review`, `jsonpatch`), other objects as far as they are known (`known`), certificates (`certificates`,
`keeper`) and the server itself (`server`).
"""
