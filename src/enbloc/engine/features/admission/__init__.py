"""Admission (M6): a gang with minResources is enqueued once these could be met. Its pods are created only then.

`enqueue` has the action and what gates a gang (`gates`, `why_gated`). `demand` counts what enqueued gangs will use, and
until when. `awaited_pods` leaves turns and room to pods that are being created (`in_line`, `not_now`, `keeps_room`).
`deadlines` reads gangs anew whose time has come, if the plugin `sla` is listed. Read `enqueue` first.
"""
