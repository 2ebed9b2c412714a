"""How far the rates of a replay are from flows and packets: the same moments, simulated."""

from ropewalk.tenancy.agreement.answer import Agreement, JobCompared, MomentCompared, answer
from ropewalk.tenancy.agreement.question import AgreementQuestion, evenly_spread

__all__ = ["Agreement", "AgreementQuestion", "JobCompared", "MomentCompared", "answer", "evenly_spread"]
