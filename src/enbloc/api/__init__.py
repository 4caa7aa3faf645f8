"""Objects as they are on the wire: their shape, and no rules about them.

An object is kept as plain JSON (`Obj`); the structs in here are typed views on it, made by `kinds.view`. Writes are
patches, so that unknown fields are never lost.
"""
