"""The flow level: max-min fair fluid flows, event by event, on the quotient by exact symmetry."""
