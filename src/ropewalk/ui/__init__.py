"""Pages that people keep open: a planner that answers while they move a slider, and every study from a form."""
