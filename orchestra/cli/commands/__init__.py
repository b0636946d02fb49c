"""Commands: what `orchestra VERB` does, a module for each verb or pair of verbs."""
