"""Many tenants on one cluster: who gets which GPUs and links, and what that does to their times."""
