"""In which order the devices of a pipeline run the passes of their micro-batches: every known timetable, one per file.

>>> from ropewalk.timetable import timetable
>>> print(timetable("1f1b", 2, 2))
1f1b: 2 devices, 2 pieces, 2 micro-batches
0  0F0 0F1 0B0 0B1
1  1F0 1B0 1F1 1B1
"""

from ropewalk.timetable.automatic import automatic as automatic
from ropewalk.timetable.dual_pipe import dual_pipe as dual_pipe
from ropewalk.timetable.dual_pipe import dual_pipe_v as dual_pipe_v
from ropewalk.timetable.early_backward import early_backward as early_backward
from ropewalk.timetable.gpipe import gpipe as gpipe
from ropewalk.timetable.interleaved import interleaved as interleaved
from ropewalk.timetable.named import TIMETABLES as TIMETABLES
from ropewalk.timetable.named import TimetableChoice as TimetableChoice
from ropewalk.timetable.named import timetable as timetable
from ropewalk.timetable.passes import Entry as Entry
from ropewalk.timetable.passes import Pass as Pass
from ropewalk.timetable.table import Timetable as Timetable
from ropewalk.timetable.table import from_rows as from_rows
from ropewalk.timetable.v_shape import v_homes as v_homes
from ropewalk.timetable.v_shape import zero_bubble_v as zero_bubble_v
from ropewalk.timetable.zero_bubble import zero_bubble_h1 as zero_bubble_h1
from ropewalk.timetable.zero_bubble import zero_bubble_h2 as zero_bubble_h2
