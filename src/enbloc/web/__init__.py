"""The read-only HTTP pages: one page for browsers, the JSON behind it, and `/metrics`."""
