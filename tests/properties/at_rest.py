"""What must hold of any cluster at rest, whatever happened to it before."""

from __future__ import annotations

from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from enbloc.api.writes import Write
from enbloc.engine.decisions import Waits
from properties.world import World, fresh_scheduler, seen


class AtRest(RuleBasedStateMachine):
    """A cluster that is looked at after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def matters(self, write: Write) -> bool:
        """Whether a scheduler that has just started must not write this."""
        return True

    @rule()
    def restart(self) -> None:
        self.world.step("restart-scheduler")

    @invariant()
    def sound(self) -> None:
        self.world.engine.state.validate()

    @precondition(lambda self: self.world.documents)
    @invariant()
    def decided_all_there_was_to_decide(self) -> None:
        """I7, G9: nothing more to do at rest, however hard one looks."""
        world = self.world
        assert world.engine.run(world.now) == []
        world.engine.force()
        found = world.engine.run(world.now)
        assert [each for each in found if not isinstance(each, Waits)] == [], "a wake-up was lost"
        world.engine.force()
        assert world.engine.run(world.now) == [], "the same was said twice"

    @precondition(lambda self: self.world.documents)
    @invariant()
    def known_again_after_a_restart(self) -> None:
        """I5: a scheduler that starts now sees the same, and has nothing to add."""
        world = self.world
        scheduler, cluster = fresh_scheduler(world.store, world.config)
        scheduler.schedule(world.now)
        assert [write for write in cluster.tried if self.matters(write)] == []
        mine, fresh = seen(world.engine), seen(scheduler.engine)
        for what in mine:
            assert mine[what] == fresh[what], what
