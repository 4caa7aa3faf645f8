"""Eviction (P1, P2, P3): preempt and reclaim make room for gangs that did not fit. The whole is planned first.

`evict` has both actions, and its `WAYS` the attempts for one gang in order. `rules` says whose tasks may be evicted for
it, `planner` chooses victims, `nominations` keeps the freed room for the gang. `preempt_by_order` is another preempt.
Features: `Nominations` and `EvictedGangs` are claims (`post_bind`, `reserve`); `Immunity` and `EvictionHistory` know
what may be evicted and what failed (`cycle_begins`, `gang_read`, `refused`, `retry_all`). Read `evict` first.
"""
