"""Replays of workload traces in virtual time: what would another policy have done with last month's jobs?

A trace is read by one of `formats` into `trace.Trace`; `cluster` turns its jobs into gangs on a cluster of equal nodes;
`fast` runs them on the engine alone, `stack` through the API, admission and controllers, with the same starts;
`measures` and `comparison` say what came of it. A policy is a config of the ordinary engine, see `policies`.
"""
