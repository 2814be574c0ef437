"""A fault at every system call: each call of a command that writes fails, misreports, or is the last before a kill."""
