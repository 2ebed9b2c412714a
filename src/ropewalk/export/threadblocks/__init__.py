"""Programs as work of thread blocks: what the plan formats of GPU libraries have in common.

`layout` says where chunks lie in the buffers that libraries know, `moves` turns rounds into moves between such places,
`blocks` deals the moves out to thread blocks, and `machine` runs thread blocks on buffers of symbols and watches for
races, deadlocks and leftovers, so that a file can be proved without the program it came from.
"""
