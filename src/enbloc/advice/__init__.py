"""Advice for gangs that wait: changes that let them start, each tried before it is said, and when they are expected to
start.

All of it runs on forks of a simulation (`trials`), never in a scheduling cycle. Why a gang waits is the engine's part
(`engine.diagnosis`).
"""
