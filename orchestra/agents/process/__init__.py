"""`isolation: process`: Python agents in a process of their own."""
