"""Admission (M6): a gang with minResources is enqueued once these could be met. Its pods are created only then.

`enqueue` has the action and what gates a gang (`gates`, `why_gated`). `deadlines` reads gangs anew whose time has come,
if the plugin `sla` is listed. Read `enqueue` first.
"""
