"""A believable code review, played against the CheckpointManager so that there are runs to look at.

`texts` holds what the agents say, `stage` turns it into events, `review` and `troubles` are the plays.
"""
