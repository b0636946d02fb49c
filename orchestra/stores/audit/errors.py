"""What goes wrong with an audit."""

from orchestra.errors import StoreError


class AuditFailed(StoreError):
    """What is read or removed cannot be noted."""

    template = (
        "The audit file {file} cannot be used: {reason}. A store that is audited is not read without a "
        "trace: free space on that disk, or let this user write to the file and its folder, and try again."
    )
