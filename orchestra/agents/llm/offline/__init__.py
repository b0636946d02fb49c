"""Models that need no network. They build on pydantic-ai and are imported only when one is opened."""
