"""How large, deep and long what others wrote may be: the bounds of every reader, in one place.

A file is data from outside. What is beyond these bounds is refused before memory is taken for it, with the bound in
the message. Readers of files that are large by nature (traces, columns) ask for `MOST_OF_A_TRACE`.
"""

from __future__ import annotations

MOST_BYTES = 64 * 10**6
"""Of a file that is read whole and parsed; JSON takes some twenty times its size in memory at worst."""
MOST_OF_YAML = 16 * 10**6
"""Of a YAML file, which takes a second per megabyte to read: larger ones are written as JSON."""
MOST_OF_A_TRACE = 10**9
"""Of a trace or a log that tools wrote, unpacked."""
MOST_OF_COLUMNS = 8 * 10**9
"""Of the arrays of a task graph."""
MOST_INFLATION = 300
"""Packed text grows by up to a hundred times; what grows more is a bomb, and gzip can make a thousand of one."""
DEEPEST = 64
"""Lists and mappings inside each other."""
MOST_NODES = 4_000_000
"""Of a YAML document once its aliases are written out."""
LARGEST_WHOLE = 2**64 - 1
"""Larger whole numbers fit no column, and converting them to fractions fails."""
LONGEST_LINE = 10**6
"""Characters in a line of a table."""
LONGEST_NAME = 255
"""Bytes in a name, as in the name of a file: names become files, labels and lines of tables."""
