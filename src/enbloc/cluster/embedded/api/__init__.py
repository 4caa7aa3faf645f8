"""The embedded API server without HTTP: objects, versions, watches, admission, quota, garbage collection, journal."""
