"""The engine: Atlas plays a workflow, Mercury carries assignments through, Apollo judges."""
