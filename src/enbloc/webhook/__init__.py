"""The admission webhook: the rules of `admission`, for a real API server.

The rules are those of `enbloc lint` and of the embedded cluster. This package adds what the network needs: reviews
(`review`), a cache of the objects that rules look up (`cache`), certificates (`certificates`, `certificate_rotation`)
and the server (`server`, `component`).
"""
