"""Many tenants on one leaf-spine cluster: who gets which GPUs and links, and what that does to their times."""
