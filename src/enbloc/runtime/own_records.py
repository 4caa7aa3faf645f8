"""Which of the records that objects carry count: those that this scheduler wrote, or one before it (S2).

Until a scheduler leads, a record counts if its digest verifies. From then on memory counts: an annotation that differs
from what was written is written back, and a record that was never written is removed. Marks on bound pods that do not
verify when the scheduler starts stay where they are: they may be of a version without digests, or of a key that is
gone, and neither grant nor take anything.

Nothing is sent here: `foreign` lists what is to be written back, and `translate` makes writes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, annotations_of, uid_of
from enbloc.gangs import claim_records, lapse_records, record_digests, usage_records
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.hints import EXPECTED_START
from enbloc.gangs.model import GangKey
from enbloc.gangs.own_annotations import COMMITTED, DECISION, DIGEST, EXPECTED_START_DIGEST, MARKS, OWN_ANNOTATIONS
from enbloc.gangs.record_digests import Keyring, names_known_key, sign, verify
from enbloc.runtime.damping import Damper

Texts = tuple[str | None, ...]
"""The texts of the annotations that make up one record."""
Change = dict[str, str | None]
"""Annotations as a merge patch has them."""

REMEMBERED: Final = 8
"""At most this many texts that were written and not seen yet are known of a record."""

_START: Final = (EXPECTED_START, EXPECTED_START_DIGEST)
_KIND_OF: Final = {(kind.annotation,): kind for kind in ClaimKind}
_ON_QUEUES: Final = (usage_records.ANNOTATION, lapse_records.ANNOTATION)
_LEGACY: Final = (claim_records.LEGACY_ANNOTATION,)
_RECORDS: Final = (*_KIND_OF, _LEGACY, _START, *((key,) for key in _ON_QUEUES))
"""The annotations of every record that a gang's object, its oldest pod, or a Queue may carry."""
_RECORD_KEYS: Final = OWN_ANNOTATIONS - set(MARKS)
NO_MARKS: Final = ("", "")


class _Record:
    """The last text of a record that counts, and those that were written since and not seen yet."""

    __slots__ = ("counts", "sent")

    def __init__(self, counts: Texts) -> None:
        self.counts = counts
        self.sent: list[Texts] = []

    def see(self, texts: Texts) -> bool:
        """Whether a text that was observed is ours: what counts, or written since."""
        if texts == self.counts:
            return True
        if texts not in self.sent:
            return False
        self.counts = texts
        del self.sent[: self.sent.index(texts) + 1]
        return True

    def send(self, texts: Texts) -> None:
        self.sent = [*self.sent[1 - REMEMBERED :], texts]

    @property
    def wanted(self) -> Texts:
        return self.sent[-1] if self.sent else self.counts


class _Marks(_Record):
    """The marks of one bound pod. Whether they verify depends on the gang that the pod is in."""

    __slots__ = ("gang", "node", "values")

    def __init__(self, counts: Texts, node: str) -> None:
        super().__init__(counts)
        self.node = node
        self.gang: GangKey | None = None
        self.values = NO_MARKS


class OwnRecords:
    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._leads = False
        self._records: dict[str, dict[tuple[str, ...], _Record]] = {}
        """By UID of the object that carries them."""
        self._marks: dict[str, _Marks] = {}
        """By UID of the pod: all that have a node."""
        self._signed: dict[str, tuple[str, str, GangKey, str, str]] = {}
        """By UID of pods that are being bound: digest, node, gang, decision, mark. They need not be verified when they
        come back."""
        self._foreign: dict[str, tuple[Ref, Change]] = {}
        """By UID: annotations to write back."""
        self._damper: Damper[str] = Damper()

    def lead(self) -> None:
        """From now on memory counts."""
        self._leads = True

    def gone(self, uid: str) -> None:
        self._damper.forget(uid)
        self._records.pop(uid, None)
        self._marks.pop(uid, None)
        self._signed.pop(uid, None)
        self._foreign.pop(uid, None)

    def foreign(self, now_s: float) -> list[tuple[Ref, str, Change]]:
        """What others wrote since the last call: the object, its UID, and the annotations as they should be. Of an
        object that is written too often it comes later (`due_s`)."""
        admitted = [uid for uid in self._foreign if self._damper.admit(uid, now_s)] if self._foreign else []
        return [(ref, uid, change) for uid in admitted for ref, change in [self._foreign.pop(uid)]]

    def due_s(self) -> float | None:
        """When the first record that was put off may be written back."""
        return min(map(self._damper.next_s, self._foreign), default=None)

    # ---- claims and expected starts

    def authentic(self, obj: Obj) -> Obj:
        """The object with the records that count."""
        annotations, uid = annotations_of(obj), uid_of(obj)
        known = self._records.get(uid)
        if known is None and (not annotations or _RECORD_KEYS.isdisjoint(annotations)):
            return obj
        known = self._records.setdefault(uid, {})
        change: Change = {}
        for keys in _RECORDS:
            texts = tuple([annotations.get(key) for key in keys])
            record = known.get(keys)
            if record is None and not any(texts):
                continue
            if record is None or not self._leads:
                record = known[keys] = _Record(texts if self._verifies(uid, keys, texts) else (None,) * len(keys))
            if not record.see(texts):
                change.update(zip(keys, record.wanted, strict=True))
            if not any(record.counts) and not record.sent:
                del known[keys]
        if not known:
            del self._records[uid]
        self._note(obj, uid, _RECORD_KEYS, change)
        counting = {key: text for keys, one in known.items() for key, text in zip(keys, one.counts, strict=True)}
        return _with_records(obj, annotations, counting)

    def _verifies(self, uid: str, keys: tuple[str, ...], texts: Texts) -> bool:
        if keys == _START:
            start, digest = texts
            return verify(self._keyring, digest or "", ("expected-start", uid, start or ""))
        text = texts[0] or ""
        if keys[0] in _ON_QUEUES:
            return record_digests.is_sealed(self._keyring, _on_queue(keys[0], uid), text)
        if keys not in _KIND_OF:
            return self._keyring.trusts_all  # of version 0.1, which had no digests
        return claim_records.is_ours(self._keyring, uid, _KIND_OF[keys], text)

    def claim(self, obj: Obj, kind: ClaimKind, body: str | None) -> Change:
        """The annotation that records a claim on an object; `None`: the claim has ended."""
        uid = uid_of(obj)
        text = claim_records.sealed(self._keyring, uid, kind, body) if body is not None else None
        change = self._sent(uid, (kind.annotation,), (text,))
        if _LEGACY in self._records[uid]:
            change |= self._sent(uid, _LEGACY, (None,))
        return change

    def on_queue(self, obj: Obj, key: str, body: str) -> Change:
        """The annotation that is a record of a Queue. It counts on that one only."""
        uid = uid_of(obj)
        return self._sent(uid, (key,), (record_digests.sealed(self._keyring, _on_queue(key, uid), body),))

    def expected_start(self, obj: Obj, text: str | None) -> Change:
        """The annotations that publish an expected start on an object."""
        uid = uid_of(obj)
        digest = sign(self._keyring, ("expected-start", uid, text)) if text is not None else None
        return self._sent(uid, _START, (text, digest))

    def _sent(self, uid: str, keys: tuple[str, ...], texts: Texts) -> Change:
        record = self._records.setdefault(uid, {}).setdefault(keys, _Record((None,) * len(keys)))
        record.send(texts)
        return dict(zip(keys, texts, strict=True))

    def refused(self, uid: str, change: Mapping[str, str | None]) -> None:
        """Annotations of a claim, or of a Queue, could not be written. A removal stays wanted: the claim has ended."""
        known = self._records.get(uid, {})
        for keys in [keys for keys in known if keys[0] in change]:
            record, texts = known[keys], tuple([change.get(key) for key in keys])
            if any(texts):
                record.sent = [one for one in record.sent if one != texts]
            if not any(record.counts) and not record.sent:
                del known[keys]
        if not known:
            self._records.pop(uid, None)

    # ---- marks of pods

    def marks(self, pod: Obj, gang: GangKey) -> tuple[str, str]:
        """The decision that bound a pod of this gang, and the commit mark that it carries; empty: none that counts."""
        node = pod["spec"].get("nodeName")
        if not node:
            return NO_MARKS
        uid, annotations = uid_of(pod), annotations_of(pod)
        texts = (annotations.get(DECISION), annotations.get(COMMITTED), annotations.get(DIGEST))
        known = self._marks.get(uid)
        if known is None or (not self._leads and known.counts != texts):
            known = self._marks[uid] = _Marks(texts, node)
        elif known.counts != texts:
            if known.see(texts):
                known.gang = None
            else:
                self._note(pod, uid, MARKS, dict(zip(MARKS, known.wanted, strict=True)))
        if known.gang != gang:
            known.gang, known.values = gang, self._values(uid, gang, known)
        return known.values

    def marks_read(self, uid: str) -> tuple[str, str]:
        """The marks of a pod as they were last read."""
        known = self._marks.get(uid)
        return known.values if known is not None else NO_MARKS

    def _values(self, uid: str, gang: GangKey, known: _Marks) -> tuple[str, str]:
        decision, mark, digest = known.counts
        values = (decision or "", mark or "")
        if self._signed.pop(uid, None) == (digest, known.node, gang, *values):
            return values
        if values == NO_MARKS or not verify(self._keyring, digest or "", _mark_parts(uid, known.node, gang, *values)):
            return NO_MARKS
        return values

    def is_forged(self, uid: str) -> bool:
        """Whether the marks of a pod name a key that is known here and do not verify."""
        known = self._marks.get(uid)
        return known is not None and known.values == NO_MARKS and names_known_key(self._keyring, known.counts[2] or "")

    def bound_with(self, uid: str, node: str, gang: GangKey, decision: str, mark: str) -> dict[str, str]:
        """The annotations of a Binding; `mark` may be empty."""
        digest = sign(self._keyring, _mark_parts(uid, node, gang, decision, mark))
        self._signed[uid] = (digest, node, gang, decision, mark)
        if not mark:
            return {DECISION: decision, DIGEST: digest}
        return {DECISION: decision, COMMITTED: mark, DIGEST: digest}

    def marked(self, uid: str, gang: GangKey, mark: str) -> Change:
        """The annotations of a bound pod that carries the mark of its gang from now on."""
        known = self._marks.get(uid)
        if known is None:
            return {}
        decision = known.values[0] if known.gang == gang else ""
        texts = (decision or None, mark, sign(self._keyring, _mark_parts(uid, known.node, gang, decision, mark)))
        known.send(texts)
        return dict(zip(MARKS, texts, strict=True))

    def _note(self, obj: Obj, uid: str, keys: Iterable[str], change: Change) -> None:
        """`change` is all that is to be written back of these annotations."""
        if uid not in self._foreign and not change:
            return
        _, before = self._foreign.pop(uid, (None, {}))
        whole = {key: text for key, text in before.items() if key not in keys} | change
        if whole:
            self._foreign[uid] = (ref_of(obj), whole)


class TrustedRecords(OwnRecords):
    """For recordings: objects were recorded with the records that counted, and nothing is written back."""

    def authentic(self, obj: Obj) -> Obj:
        return obj

    def marks(self, pod: Obj, gang: GangKey) -> tuple[str, str]:
        annotations = annotations_of(pod)
        if not pod["spec"].get("nodeName"):
            return NO_MARKS
        return annotations.get(DECISION, ""), annotations.get(COMMITTED, "")

    def is_forged(self, uid: str) -> bool:
        return False

    def marked(self, uid: str, gang: GangKey, mark: str) -> Change:
        return {}


def _mark_parts(uid: str, node: str, gang: GangKey, decision: str, mark: str) -> tuple[str, ...]:
    """Decision and mark have one digest: a pod whose mark was taken away was not bound without one."""
    return ("marks", uid, node, *gang, decision, mark)


def _on_queue(key: str, uid: str) -> tuple[str, str]:
    """What the digest of a Queue's record covers beside its body."""
    return key.removeprefix("enbloc.dev/"), uid


def _with_records(obj: Obj, annotations: Mapping[str, str], counting: Change) -> Obj:
    wanted = {key: text for key, text in annotations.items() if key not in _RECORD_KEYS}
    wanted.update({key: text for key, text in counting.items() if text is not None})
    if wanted == annotations:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": wanted}}
