"""History: everything that reads recorded runs. Nothing here writes."""
