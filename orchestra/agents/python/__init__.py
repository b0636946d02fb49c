"""Python agents: functions of `.py` files, in this process."""
