"""One fused all-reduce that streams: chunks circulate in a ring of ranks as messages between neighbours.

Three things overlap, and each can be switched off: chunks are added while others are sent, chunks are broadcast while
others are still reduced, and a tensor is released when its own chunks are there.
"""
