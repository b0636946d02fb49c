"""Rules: what Atlas does next, each rule a pure function of the state."""
