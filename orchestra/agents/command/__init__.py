"""`command:` agents: any program that talks JSON lines."""
