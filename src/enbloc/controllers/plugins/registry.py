"""Job plugins by name."""

from __future__ import annotations

from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.plugins.env import Env
from enbloc.controllers.plugins.mpi import Mpi
from enbloc.controllers.plugins.plugin import Flags, Plugin
from enbloc.controllers.plugins.pytorch import Pytorch
from enbloc.controllers.plugins.ray import Ray
from enbloc.controllers.plugins.ssh import KeyPair, Ssh
from enbloc.controllers.plugins.svc import Svc
from enbloc.controllers.plugins.tensorflow import Tensorflow


def plugins_of(plan: JobPlan, key_pair: KeyPair) -> dict[str, Plugin]:
    """The job's plugins, in the order in which they patch pods."""
    return {name: _plugin(name, Flags(arguments), key_pair) for name, arguments in plan.plugins.items()}


def _plugin(name: str, flags: Flags, key_pair: KeyPair) -> Plugin:
    match name:
        case "env":
            return Env()
        case "svc":
            return Svc(flags)
        case "ssh":
            return Ssh(flags, key_pair)
        case "pytorch":
            return Pytorch(flags)
        case "tensorflow":
            return Tensorflow(flags)
        case "mpi":
            return Mpi(flags)
        case "ray":
            return Ray(flags)
    raise AssertionError(f"no plugin {name!r} among those that exist")
