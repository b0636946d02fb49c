"""The audit: who read or removed stored snapshots, in a file beside the store.

A *line* tells of one run and one thing that was done: who, when, with what, which snapshots, and whether
their content was read or only the columns that lists show. Lines are chained by digests, and the newest
digest stands in a second file, the *head*, so that a line that was changed, moved or taken away is noticed.
Commits are not noted: they are the history themselves. Neither are lists of runs, which hold no snapshots.

    log      the two files: lines, appending, reading, proving
    store    a store whose readings and removals are noted, and the ledger that gathers them
"""
