"""Gangs that are enqueued and whose pods do not exist yet (M6, G3, G8).

`demand` counts what they will use, and until when. `awaited_pods` leaves turns and room to pods that are being created
(`in_line`, `not_now`, `keeps_room`). Backfill, evictions and reservations ask both.
"""
