"""Backfill (R8): gangs behind one that waits start early if that does not delay it, as known run times tell.

`easy_backfill` protects the first gang of each queue, `conservative_backfill` all of them in order; a config has at
most one. Both limit gangs in `pre_filter`, note in `post_filter` and `served` who waits and what was bound, and publish
forecasts in `serving_ends`. `expected_start` writes these, and the starts of gangs with reserved nodes. `free_profile`
knows what becomes free when. Read `easy_backfill` first.
"""
