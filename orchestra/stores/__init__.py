"""Stores: where rows and objects are kept. `open_store` in `registry` opens one by its URL.

Each store is imported only when its URL is asked for, so that naming one does not load the drivers of all.
"""
