"""Closed forms of synchronisation time: one all-reduce of P bytes, by collective, fabric and routing.

>>> from ropewalk.fabric import Torus
>>> closed_form("ring", Torus((4, 4)), "dimension").bandwidth_term
Fraction(15, 32)
"""

from ropewalk.collectives.cost.counted import counted, counted_at_hosts
from ropewalk.collectives.cost.form import ClosedForm, Edition, bandwidth_bound
from ropewalk.collectives.cost.star import dedicated_servers
from ropewalk.collectives.cost.table import closed_form, closed_forms

__all__ = [
    "ClosedForm",
    "Edition",
    "bandwidth_bound",
    "closed_form",
    "closed_forms",
    "counted",
    "counted_at_hosts",
    "dedicated_servers",
]
