"""Runners: where an agent's code lives, and how one attempt at its assignment is carried through.

In the loop (`async def`), in a thread (`def`), in a process of its own (`isolation: process`), or in a
program that talks JSON lines (`command:`). `Runners` in `registry` chooses. `Context` and `BlockingContext` are what
Python agents see.
"""
