"""A fabric as a real network inside this machine: namespaces of the kernel, shaped links, routes, and ranks on them.

Nothing is imported here, because the processes that hold a lab and run its ranks should start at once.
"""
