"""Playing: what the commands share that run, resume or change runs."""
