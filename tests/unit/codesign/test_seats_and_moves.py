"""The space of a search: which seats there are, what fits, and what is proposed."""

from collections import Counter
from random import Random

import pytest
from tiny_seats import priced, recommender, stacked, tiny_space, with_experts

from ropewalk.codesign.moves import propagate, propose, reseat, swap
from ropewalk.codesign.seats import Ledger, check_memory, space_of, staged
from ropewalk.errors import StrategyError
from ropewalk.strategy.seating import Manner, Seat, Seating
from ropewalk.workload import zoo
from ropewalk.workload.zoo.topoopt import JOBS


def test_layers_sit_on_cosets_and_tables_on_one_server():
    _, space = tiny_space(recommender(), 4)
    degrees = [Counter(space.seats[at].degree for at in options) for options in space.options]
    assert degrees[0] == degrees[1] == {1: 4}
    assert degrees[2] == degrees[3] == degrees[4] == {4: 1, 2: 2, 1: 4}
    assert {space.seats[at].manner for at in space.options[0]} == {Manner.PINNED}
    assert space.size == 4 * 4 * 7**3


def test_a_search_starts_data_parallel_with_tables_going_round():
    _, space = tiny_space(recommender(tables=5), 4)
    start = space.seating(space.start)
    assert [seat.servers for seat in start.seats[:5]] == [(0,), (1,), (2,), (3,), (0,)]
    assert {seat.servers for seat in start.seats[5:]} == {(0, 1, 2, 3)}


def test_extensions_are_there_only_when_allowed():
    def manners(space):
        return {space.seats[at].manner for options in space.options for at in options}

    assert manners(tiny_space(with_experts(), 4)[1]) == {Manner.SAMPLE}
    assert manners(tiny_space(with_experts(), 4, tensor=True)[1]) == {Manner.SAMPLE, Manner.COLUMNS}
    assert manners(tiny_space(with_experts(), 4, expert=True)[1]) == {Manner.SAMPLE, Manner.EXPERT}


def test_degrees_that_do_not_divide_the_batch_are_left_out():
    space = space_of(priced(stacked(), batch=4), 12)
    assert {space.seats[at].degree for at in space.options[0]} == {1, 2, 4}


def test_what_does_not_fit_on_all_servers_starts_in_stages():
    roomy, tight = priced(stacked(widths=(64,) * 5)), priced(stacked(widths=(64,) * 5), memory=1e9 + 1.1e5)
    assert {seat.degree for seat in space_of(roomy, 4).seating(space_of(roomy, 4).start).seats} == {4}
    space = space_of(tight, 4)
    start = space.seating(space.start)
    assert [seat.servers for seat in start.seats] == [(0, 2), (0, 2), (1, 3), (1, 3)]
    check_memory(space, start)
    with pytest.raises(StrategyError, match=r"a GPU of server 0 would hold .* GB .* has room for"):
        check_memory(space, space_of(roomy, 4).seating(space_of(roomy, 4).start))


def test_what_fits_nowhere_is_refused_with_a_remedy():
    with pytest.raises(StrategyError, match=r"stack: a GPU of server 0 would hold .* has room for"):
        space_of(priced(stacked(widths=(64,) * 5), memory=1e9 + 1e4), 4)


def test_tensor_parallelism_makes_room():
    memory = 1e9 + 4.5e4
    with pytest.raises(StrategyError):
        space_of(priced(stacked(widths=(64, 64)), batch=4, memory=memory - 2e4), 4)
    space = space_of(priced(stacked(widths=(64, 64)), batch=4, memory=memory - 2e4), 4, tensor=True)
    assert space.seating(space.start).seats[0].manner is Manner.COLUMNS


def test_the_largest_published_model_does_not_fit_on_one_gpu_of_every_server():
    """CANDLE's 94.4 GB of weights: the published search starts where no GPU has room."""
    job = JOBS["topoopt-candle-dedicated"]
    pricer = priced(zoo.build("topoopt-candle-dedicated", 1), job.global_batch, gpus=job.gpus, memory=80e9)
    space = space_of(pricer, 128)
    assert {seat.degree for seat in space.seating(space.start).seats} == {32}


def test_a_ledger_kept_up_to_date_is_the_ledger_made_anew():
    _, space = tiny_space(recommender(), 4)
    ledger, draw = Ledger(space, space.start), Random(3)
    for _ in range(50):
        changes = propose(space, ledger.places, draw)
        assert ledger.fits(changes)
        ledger.keep(changes)
    assert ledger.held == pytest.approx(Ledger(space, ledger.places).held)


def test_moves_propose_only_seats_that_are_allowed():
    _, space = tiny_space(recommender(tables=3), 6, tensor=True)
    places, draw = list(space.start), Random(5)
    for _ in range(500):
        for layer, seat in propose(space, places, draw).items():
            assert seat in space.allowed[layer]
            assert seat != places[layer]
            places[layer] = seat


def test_reseating_is_as_likely_one_way_as_back():
    _, space = tiny_space(stacked(widths=(16, 32)), 4)
    drawn = [reseat(space, space.start, Random(seed)).get(0, space.start[0]) for seed in range(7000)]
    counts = Counter(drawn)
    assert set(counts) == set(space.options[0])
    assert all(850 < count < 1150 for count in counts.values())


def test_swapping_exchanges_two_tables():
    _, space = tiny_space(recommender(tables=2), 4)
    changes = swap(space, space.start, Random(0))
    assert changes == {0: space.start[1], 1: space.start[0]}
    assert swap(*(lambda only: (only, only.start))(tiny_space(stacked(), 4)[1]), Random(0)) == {}


def test_a_propagating_seat_prefers_neighbours_it_exchanges_much_with():
    pricer, space = tiny_space(recommender(tables=0, hidden=64), 4)
    # bottom (layer 0) and top (layer 2) are the neighbours of join (layer 1); what join sends to top is as large
    places = [space.options[0][1]] * 3
    places[1] = space.options[1][0]
    touched = Counter(min(propagate(space, places, Random(seed)), default=None) for seed in range(2000))
    assert set(touched) == {0, 1, 2}
    assert pricer.output_bytes(0) == pricer.output_bytes(1)


def test_a_propagating_seat_goes_on_three_times_out_of_four():
    _, space = tiny_space(stacked(widths=(8,) * 12), 4)
    places = [space.options[0][0]] * 11
    places[5] = space.options[0][1]
    lengths = [len(propagate(space, places, Random(seed))) for seed in range(3000)]
    assert max(lengths) > 1
    assert min(lengths) == 0


def test_stages_must_divide_the_servers():
    pricer, space = tiny_space(stacked(), 4)
    with pytest.raises(StrategyError, match="4 servers do not make 3 equal stages: give a divisor"):
        staged(space, pricer, 3)


def test_a_seat_outside_the_space_is_named():
    _, space = tiny_space(stacked(), 4)
    with pytest.raises(StrategyError, match="layer dense 0 sits columns on 2 servers, the first 0"):
        space.places_of(Seating(4, (Seat((0, 2), Manner.COLUMNS), Seat((0,)))))
    with pytest.raises(StrategyError, match="0 servers: give 1 or more"):
        space_of(priced(stacked()), 0)
