"""The `files` store: one folder, one process, and nothing in it that needs a database to look at."""
