"""The estimate once more in plain Python: dictionaries and sorted lists, no arrays, nothing kept between calls."""

from ropewalk.collectives.act import Act
from ropewalk.strategy.between import gradients_between, parts_between
from ropewalk.task.lower.seat_pricer import met_in, seconds_in


def estimated(pricer, seating, network, bucket_bytes=0.0):
    layers, seats = pricer.workload.layers, seating.seats
    works = [pricer.work(at, seat) for at, seat in enumerate(seats)]
    micro = pricer.micro_batches
    edges = [(source, reader) for reader, layer in enumerate(layers) for source in dict.fromkeys(layer.inputs)]
    free = dict.fromkeys(range(seating.servers), 0.0)
    busy, shared, group_end, waiting, over = {}, {}, {}, [], {}
    summing = {seat.servers for seat, work in zip(seats, works, strict=True) if work.sum_bytes}

    def send():
        """Take the job that was ready first; ties go to the one that was there first."""
        job = min(range(len(waiting)), key=lambda at: waiting[at][0])
        ready, key, load, size, group = waiting.pop(job)
        begin = max(ready, group_end.get(group, 0.0) if group else 0.0) + load.latency
        rivals = 0 if group else sum(group_end.get(other, 0.0) > begin for other in summing)
        end = begin
        for link, seconds, flows in zip(load.link.tolist(), load.seconds, load.flows, strict=True):
            turn = max(busy.get(link, 0.0), begin) + size * seconds
            busy[link] = turn
            if not group:
                turn = min(turn, max(shared.get(link, 0.0), begin) + size * seconds * (1 + rivals / flows))
                shared[link] = turn
            end = max(end, turn)
        over[key] = end
        if group:
            group_end[group] = end

    def run(way, at, number):
        seat = seats[at]
        arrived = 0.0
        for source, reader in edges:
            if (reader if way == "forward" else source) == at:
                key = way, source, reader, number
                while any(job[1] == key for job in waiting):
                    send()
                arrived = max(arrived, over.get(key, 0.0))
        moves = works[at].forward if way == "forward" else works[at].backward
        own = seconds_in(moves)
        for met in met_in(moves):
            if met.act is Act.ALL_REDUCE:
                own += network.sum_load(seat.servers).alone(met.amount)
                continue
            pairs = [(a, b) for a in seat.servers for b in seat.servers if a != b]
            own += network.pairs_seconds(*zip(*pairs, strict=True), [met.amount / seat.degree] * len(pairs))
        for server in seat.servers:
            free[server] = max(free[server], arrived) + own
        done = max(free[server] for server in seat.servers)
        # Edges leave in the order in which the kernel lists them: by reader forward, by source back.
        for source, reader in edges:
            if (source if way == "forward" else reader) == at:
                ends = seats[source], seats[reader]
                parts = parts_between(*ends) if way == "forward" else gradients_between(*ends[::-1])
                if len(parts.src):
                    load = network.pairs_load(parts.src, parts.dst, parts.bytes_of(1.0))
                    waiting.append(
                        (done, (way, source, reader, number), load, pricer.output_bytes(source) / micro, None)
                    )
        return done

    for number in range(micro):
        for at in range(len(layers)):
            run("forward", at, number)
    left = [at for at in reversed(range(len(layers))) if works[at].sum_bytes]
    filled = {}
    for number in range(micro):
        for at in reversed(range(len(layers))):
            done = run("backward", at, number)
            if number == micro - 1 and works[at].sum_bytes:
                group = seats[at].servers
                left.remove(at)
                filled[group] = filled.get(group, 0.0) + works[at].sum_bytes
                if filled[group] >= bucket_bytes or not any(seats[other].servers == group for other in left):
                    waiting.append((done, ("sum", at), network.sum_load(group), filled.pop(group), group))
    while waiting:
        send()
    ends = []
    for server in free:
        summed = max((end for group, end in group_end.items() if server in group), default=0.0)
        updates = sum(work.update_s for work, seat in zip(works, seats, strict=True) if server in seat.servers)
        ends.append(max(free[server], summed) + updates)
    return max([*ends, *over.values()])
