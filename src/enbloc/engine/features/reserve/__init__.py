"""Reservations (R): nodes are kept for gangs that starve, until running pods have left enough room there.

`starvation` knows which gangs starve (`time_passes`, `due`), the action in `reserve` makes reservations for them, and
`plan` chooses the nodes. `reservations` is their kind of claim: it reviews and ends them. `reserved_nodes` lets gangs
of higher priority start on such nodes (`post_filter`); `core/claims/closed_nodes` keeps all others off. Read `reserve`
first.
"""
