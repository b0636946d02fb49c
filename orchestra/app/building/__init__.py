"""Building workflows in Python: the same data as a workflow file holds, checked by the same code."""
