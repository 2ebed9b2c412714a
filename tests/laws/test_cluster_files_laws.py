"""What is written for operators is read back as it was, and leaf rules are exactly one for each GPU and leaf."""

import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.export.cluster import (
    AddressPlan,
    addresses_csv,
    check_rules,
    leaf_rules,
    parse_sonic,
    rank_file,
    read_addresses,
    read_rank_file,
    read_rules,
    rules_json,
    sonic_documents,
)
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.imports import compress, expand
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.traces import Sizes, Synthetic, TraceJob, read_trace, write_jobs
from ropewalk.tenancy.traces.prepare import matched

name = st.from_regex(r"[a-z]{0,3}[0-9]{0,4}[a-z-]{0,2}", fullmatch=True).filter(bool)


@given(st.lists(name, min_size=1, max_size=30))
def test_a_folded_host_list_unfolds_to_the_same_names_in_the_same_order(names):
    assert expand(compress(names)) == names


optional = st.none()
seconds = st.floats(1e-3, 1e9)
jobs = st.builds(
    TraceJob,
    name=st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8).filter(
        lambda text: text not in ("None", "null", "nan", "NaN", "NaT")
    ),
    gpus=st.integers(1, 10**5),
    arrival_s=st.floats(0, 1e9),
    duration_s=seconds,
    iterations=optional | st.integers(1, 10**9),
    model=optional | st.sampled_from(["vgg16", "a, b", 'with "quotes"']),
    batch=optional | st.integers(1, 4096),
    collective=optional | st.just("ring"),
    communication_share=optional | st.floats(0, 0.999),
    volume_bytes=optional | st.integers(0, 10**12),
    compute_s=optional | st.floats(0, 1e6),
    deadline_s=optional | st.floats(1.1e9, 1e10),
    expected_s=optional | seconds,
)


@given(st.lists(jobs, min_size=1, max_size=8, unique_by=lambda job: job.name))
def test_jobs_come_back_to_the_last_bit(listed):
    ordered = sorted(listed, key=lambda job: job.arrival_s)
    with tempfile.TemporaryDirectory() as folder:
        write_jobs(ordered, Path(folder) / "jobs.csv")
        assert read_trace(Path(folder) / "jobs.csv").jobs == tuple(ordered)


@given(st.integers(0, 2**32), st.integers(1, 40))
@settings(max_examples=20)
def test_synthetic_traces_are_the_same_again_and_readable(seed, count):
    made = Synthetic(jobs=count, cluster_gpus=128, load=0.7, slack=2.0, seed=seed)
    assert made.build() == made.build()
    assert all(not job.flaws() and job.gpus <= 128 for job in made.build())


@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=60),
    st.integers(0, 5),
    st.dictionaries(st.integers(1, 99), st.integers(1, 9), min_size=1, max_size=5),
)
def test_quantile_matching_never_turns_sizes_round(sizes, seed, counts):
    after = matched(sizes, Sizes.of_counts("x", counts), seed)
    order = np.argsort(sizes, kind="stable")
    for one, other in pairwise(order):
        if sizes[one] < sizes[other]:
            assert after[one] <= after[other]
    assert set(after) <= set(counts)


@st.composite
def plants_with_jobs(draw):
    """A plant with leafs of different sizes and parallel cables, and jobs placed on it until one does not fit."""
    per_server = draw(st.sampled_from([1, 2, 4]))
    servers = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    cables = draw(st.integers(1, 2))
    spines = max(servers) * per_server
    made = Plant(
        name="drawn",
        gpus_per_server=per_server,
        server_leaf=np.repeat(np.arange(len(servers)), servers),
        cables=np.full((len(servers), spines), cables),
    )
    state = Occupancy(made)
    allocate = allocator_named(draw(st.sampled_from(["vclos-all-divisors", "vclos", "laas", "none"])))
    for number, gpus in enumerate(draw(st.lists(st.integers(1, made.gpus), min_size=1, max_size=6))):
        found = allocate(state, f"job{number}", gpus)
        if isinstance(found, Allocation):
            state.place(found)
    return state


@given(plants_with_jobs())
@settings(max_examples=60, deadline=None)
def test_rules_are_exactly_one_for_each_gpu_on_its_leaf_and_survive_every_format(state):
    plant, jobs = state.plant, list(state.jobs.values())
    plan = AddressPlan.numbered(plant)
    plan.check(plant)
    rules = leaf_rules(plant, jobs, plan)
    leaving = {
        gpu: (leaf, spine)
        for job in jobs
        for gpu, leaf, spine in zip(job.gpus, job.leaf_of_gpu, job.spine_of_gpu, strict=True)
        if spine >= 0
    }
    assert {rule.gpu: (one.leaf, rule.spine) for one in rules for rule in one.sources} == leaving
    assert sum(len(one.sources) for one in rules) == len(leaving)
    reserved = {(leaf, spine, cable): job.job for job in jobs for leaf, spine, cable in job.reserved()}
    owned = {job.job: job.guarantee == "contention-free" and bool(job.links) for job in jobs}
    used = Counter((one.leaf, rule.spine, rule.cable) for one in rules for rule in one.sources if owned[rule.job])
    assert all(count == 1 for count in used.values())
    for one in rules:
        for rule in one.sources:
            assert not owned[rule.job] or reserved[one.leaf, rule.spine, rule.cable] == rule.job
    documents = sonic_documents(rules, plant, plan)
    from_sonic = [parse_sonic(documents[plant.leaf_names[one.leaf]], one.leaf, plant, plan) for one in rules]
    check_rules(from_sonic, plant, jobs, plan)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.json"
        path.write_text(rules_json(rules, plant))
        assert read_rules(path, plant) == rules
        (Path(folder) / "a.csv").write_text(addresses_csv(plan, plant))
        assert read_addresses(Path(folder) / "a.csv", plant) == plan
        for job in jobs:
            (Path(folder) / "rankfile").write_text(rank_file(plant, job))
            assert read_rank_file(Path(folder) / "rankfile", plant) == job.gpus
