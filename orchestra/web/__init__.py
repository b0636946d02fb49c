"""The snapshot browser: an HTTP API over one store, a page that uses it, and what guards both."""
