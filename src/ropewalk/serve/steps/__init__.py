"""What each operation does: one function per operation, `(turn, operation) -> answer`."""
