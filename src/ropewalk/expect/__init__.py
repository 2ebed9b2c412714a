"""What a healthy cluster should show, from its own description; and which part of it explains a shortfall.

`question.py` is what is asked, `study.answer` answers it. Nothing is imported here: the table of benchmarks is read for
help texts, which load no simulator.
"""
