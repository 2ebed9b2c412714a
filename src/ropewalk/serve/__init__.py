"""A controller for a live cluster: it gives jobs GPUs and links and keeps the queue; no kill makes it lose anything."""
