"""Agents at work: Mercury hands assignments out, Apollo judges, attempts begin and end."""
