"""Every known timetable, one idea a file; `named.py` has them in a table."""

from ropewalk.pipeline.timetables.automatic import automatic as automatic
from ropewalk.pipeline.timetables.dual_pipe import dual_pipe as dual_pipe
from ropewalk.pipeline.timetables.dual_pipe import dual_pipe_v as dual_pipe_v
from ropewalk.pipeline.timetables.early_backward import by_clock as by_clock
from ropewalk.pipeline.timetables.early_backward import by_rule as by_rule
from ropewalk.pipeline.timetables.early_backward import early_backward as early_backward
from ropewalk.pipeline.timetables.gpipe import gpipe as gpipe
from ropewalk.pipeline.timetables.interleaved import interleaved as interleaved
from ropewalk.pipeline.timetables.v_shape import v_homes as v_homes
from ropewalk.pipeline.timetables.v_shape import zero_bubble_v as zero_bubble_v
from ropewalk.pipeline.timetables.zero_bubble import zero_bubble_h1 as zero_bubble_h1
from ropewalk.pipeline.timetables.zero_bubble import zero_bubble_h2 as zero_bubble_h2
