"""Kinds of agents: where an agent's code lives, and how one attempt at its assignment runs.

In the loop (`async def`), in a thread (`def`), in a process of its own (`isolation: process`), or in a
program that talks JSON lines (`command:`). `context` holds what Python agents see.
"""
