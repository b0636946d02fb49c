"""The `files` store: a folder of plain files that one process uses at a time."""
