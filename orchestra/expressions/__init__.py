"""Expressions: the conditions and templates of workflows and queries, checked and evaluated."""
