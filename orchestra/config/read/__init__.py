"""Reading YAML: from bytes to plain data with positions."""
