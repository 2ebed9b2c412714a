"""MSCCL algorithm files: programs as the XML that MSCCL, its executor and older RCCL load, and such files proved.

>>> import tempfile, pathlib
>>> from ropewalk.collectives import ring_all_gather
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.xml"
>>> algo = write_msccl_xml(ring_all_gather([[0, 1, 2, 3]]), path, collective="allgather")
>>> prove_algo(read_msccl_xml(path), slots=0)
"""

from ropewalk.export.msccl_xml.algo import Algo
from ropewalk.export.msccl_xml.interpret import prove_algo
from ropewalk.export.msccl_xml.read import read_msccl_xml
from ropewalk.export.msccl_xml.targets import TARGETS, LibraryLimits
from ropewalk.export.msccl_xml.write import algo_of, write_msccl_xml

__all__ = ["TARGETS", "Algo", "LibraryLimits", "algo_of", "prove_algo", "read_msccl_xml", "write_msccl_xml"]
