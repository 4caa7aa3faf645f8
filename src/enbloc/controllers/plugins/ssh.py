"""`ssh`: one key pair a job, so that its pods reach each other without a password.

The caller chooses the key: a cluster gets a real one, a simulation a placeholder text.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.plugin import Flags, host_of, owned
from enbloc.controllers.plugins.pod_patch import PodPatch

KeyPair = Callable[[str], tuple[str, str]]
"""A job's UID → its private key (PEM) and its public key (as in `authorized_keys`)."""

FILE_MODE: Final = 0o600
_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def rsa_key_pair(uid: str) -> tuple[str, str]:
    """A real key pair, new at each call."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


def simulated_key_pair(uid: str) -> tuple[str, str]:
    """A placeholder text, the same at each call: simulations need no key."""
    return f"SIMULATED, NOT A KEY: private half of job {uid}\n", f"SIMULATED, NOT A KEY: public half of job {uid}\n"


class Ssh:
    def __init__(self, flags: Flags, key_pair: KeyPair) -> None:
        self._path = flags.text("ssh-key-file-path", "/root/.ssh")
        self._given = (flags.text("ssh-private-key", ""), flags.text("ssh-public-key", ""))
        self._key_pair = key_pair

    def objects(self, plan: JobPlan) -> list[Obj]:
        private, public = self._given if all(self._given) else self._key_pair(plan.uid)
        texts = (private, public, public, _client_config(plan))
        data = {name: base64.b64encode(text.encode()).decode() for name, text in zip(_FILES, texts, strict=True)}
        return [owned(plan, "v1", "Secret", f"{plan.name}-ssh", data=data)]

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        name = f"{plan.name}-ssh"
        items = [{"key": file, "path": file} for file in _FILES]
        secret = {"secretName": name, "items": items, "defaultMode": FILE_MODE}
        patch.volume({"name": name, "secret": secret}, self._path)


def _client_config(plan: JobPlan) -> str:
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for role in plan.roles:
        for index in range(role.replicas):
            lines += [f"Host {plan.name}-{role.name}-{index}", f"  HostName {host_of(plan, role, index)}"]
    return "\n".join(lines) + "\n"
