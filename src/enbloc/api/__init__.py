"""Objects as they are on the wire. Knows the shape of things and no rule about them.

An object is kept as it came, as plain JSON (`Obj`); the structs in here are typed views on it, made by
`decode` when somebody wants to read it. What is written goes out as patches, so no field that
this project has never heard of is ever lost.
"""
