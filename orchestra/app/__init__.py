"""The application: puts the parts together and offers them as one class, `Orchestra`."""
