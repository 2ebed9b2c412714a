"""A network in memory whose devices fail, do half of what they are told, or do it late; every step is looked at."""

from concurrent.futures import Future

from ropewalk.export.cluster import AddressPlan
from ropewalk.serve.controller import Controller
from ropewalk.serve.operation import Repair
from ropewalk.serve.outcome import Refused
from ropewalk.serve.rules.book import Book
from ropewalk.serve.rules.driver import DriverError, DriverTimeout, Present
from ropewalk.serve.rules.reconciler import Reconciler
from ropewalk.serve.rules.rule import Foreign, Join, Rule, Send
from ropewalk.serve.rules.service import RuleService
from ropewalk.serve.rules.source import ControllerSource
from ropewalk.serve.settings import Settings
from ropewalk.tenancy.optical.circuits import ends_of

TIMEOUT_S = 5.0


class Killed(BaseException):
    """The process of the reconciler is gone."""


class Writer:
    """The controller without its store."""

    def __init__(self, controller, world):
        self.controller, self.world = controller, world

    def read(self, function):
        future = Future()
        future.set_result(function(self.controller))
        return future

    def submit(self, operation, *, actor=""):
        future = Future()
        try:
            future.set_result(self.controller.apply(operation, self.world.now))
        except Refused as refusal:
            future.set_exception(refusal)
        self.world.look()
        return future


class FlakyDriver:
    """Rules as lists, of which the first with a key counts; `luck()` says what becomes of each small step."""

    name, settles_s = "flaky", TIMEOUT_S

    def __init__(self, plant, world):
        self.plant, self.world = plant, world
        self.rules = {device: [] for device in (*plant.leaf_names, *plant.spine_names)}
        self.late = []
        """(until when it may still happen, step)."""
        self.dead = {device: set() for device in self.rules}

    def devices(self):
        return tuple(self.rules)

    def handles(self, body):
        return not isinstance(body, Foreign)

    def present(self, device):
        self._do(device, [])
        return Present(tuple(self.rules[device]), tuple(sorted(self.dead[device])))

    def apply(self, device, rules):
        there = self.rules[device]
        steps = []
        for rule in rules:
            steps.append(lambda rule=rule: there.append(rule) if rule not in there else None)
            steps.append(lambda rule=rule: self._keep_only(device, rule))
        self._do(device, steps)

    def remove(self, device, rules):
        def away(rule):
            self.rules[device][:] = [one for one in self.rules[device] if one != rule]

        self._do(device, [lambda rule=rule: away(rule) for rule in rules])

    def _keep_only(self, device, rule):
        there = self.rules[device]
        there[:] = [one for one in there if one.key != rule.key or one == rule]

    def _do(self, device, steps):
        for at in range(len(steps) + 1):
            luck = self.world.luck()
            if luck == "kill":
                raise Killed
            if luck == "fail":
                raise DriverError(f"{device}: the link to it is bad: try again")
            if luck == "late":
                self.late += [(self.world.now + TIMEOUT_S, step) for step in steps[at:]]
                raise DriverTimeout(f"{device}: no answer: try again")
            if at < len(steps):
                steps[at]()
                self.world.look()


class World:
    """A controller, its reconciler and the network, with a clock and dice of their own."""

    def __init__(self, plant, random, mishaps=("kill", "fail", "late"), policy="vclos"):
        self.random, self.now, self.luck_is_bad, self.mishaps = random, 0.0, 0.0, mishaps
        self.controller = Controller.empty(plant, Settings(policy=policy, keep_links=True))
        self.plant = self.controller.state.occupancy.plant
        self.addresses = AddressPlan.numbered(self.plant)
        self.driver = FlakyDriver(self.plant, self)
        self.planted = set()
        self.links_may_die = True
        self.restart()

    def restart(self):
        source = ControllerSource(Writer(self.controller, self), self.plant, self.addresses)
        self.service = RuleService(source, Reconciler([self.driver], clock=lambda: self.now, at_once=1))

    def luck(self):
        if self.random.random() >= self.luck_is_bad:
            return "good"
        return self.random.choice(self.mishaps)

    def tick(self, seconds):
        """Time goes by, and what came late happens at some time within its own."""
        self.now += seconds
        still = []
        for until, step in self.driver.late:
            if until <= self.now or self.random.random() < 0.5:
                step()
                self.look()
            else:
                still.append((until, step))
        self.driver.late = still

    def reconcile(self, *, whole=True, patient=False):
        try:
            return self.service.once(whole=whole, patient=patient)
        except Killed:
            self.restart()
            return None

    def running(self):
        return [job for job in self.controller.state.jobs.values() if job.state == "running"]

    def look(self):
        """No rule leads over a link of another running job, neither up nor down again."""
        owner_of_link, owner_of_gpu = {}, {}
        for job in self.running():
            for link in self._links(job.allocation):
                assert owner_of_link.setdefault(link, job.id) == job.id
            owner_of_gpu |= dict.fromkeys(job.allocation.gpus, job)
        for device, rules in self.driver.rules.items():
            counts = {}
            for rule in rules:
                counts.setdefault(rule.key, rule)
            for rule in counts.values():
                if isinstance(rule.body, Send) and rule not in self.planted:
                    self._look_at(device, rule, owner_of_link, owner_of_gpu)
                elif isinstance(rule.body, Join):
                    self._look_at_circuit(device, rule, owner_of_link)

    def _links(self, held):
        """Cables between leafs and spines; with circuits, the fibres of leafs."""
        if held.stage != "ocs":
            return held.reserved()
        ends = ends_of(self.plant, held)
        return [
            (leaf, self.plant.packet_spines + switch, 0) for leaf, switch in zip(ends.leaf, ends.switch, strict=True)
        ]

    def _look_at_circuit(self, device, rule, owner_of_link):
        switch = self.plant.spine_names.index(device)
        for end in (rule.body.leaf, rule.body.far_end):
            if end in self.plant.leaf_names:
                fibre = (self.plant.leaf_names.index(end), switch, 0)
                assert owner_of_link.get(fibre, rule.job) == rule.job, f"{rule} takes a fibre of another job"

    def _look_at(self, device, rule, owner_of_link, owner_of_gpu):
        by_name = {str(address): gpu for address, gpu in self.addresses.gpu_at.items()}
        hops = {str(address): cable for address, cable in self.addresses.cable_to.items()}
        leaf, spine, cable = hops[rule.body.next_hop]
        assert self.plant.leaf_names[leaf] == device
        job = owner_of_gpu.get(by_name[rule.body.source])
        assert owner_of_link.get((leaf, spine, cable), rule.job) == rule.job, f"{rule} leads over a link of another job"
        if job is not None and rule.job == job.id and job.allocation.stage == "clos":
            for other in job.allocation.leafs:
                holder = owner_of_link.get((other, spine, 0), job.id)
                assert other == leaf or holder == job.id, f"{rule} comes down over a link of {holder}"

    def converged(self):
        """Is everything as the controller wants it?"""
        wanted = self.service._source.wanted()
        book = Book()
        book.update(wanted)
        right = all(set(rules) == set(book.rules(device)) for device, rules in self.driver.rules.items())
        return right and not wanted.releasing

    def break_link(self):
        """A cable dies; the leaf says so when it is asked."""
        leaf, spine = (self.random.choice(names) for names in (self.plant.leaf_names, self.plant.spine_names))
        self.driver.dead[leaf].add((leaf, spine))

    def mend_links(self):
        """All cables are whole again, and the operator says so."""
        parts = tuple(f"link:{leaf}-{spine}" for dead in self.driver.dead.values() for leaf, spine in sorted(dead))
        for dead in self.driver.dead.values():
            dead.clear()
        if parts:
            self.controller.apply(Repair(parts), self.now)

    def lose(self, leaf):
        if self.driver.rules[leaf]:
            self.driver.rules[leaf].pop(self.random.randrange(len(self.driver.rules[leaf])))

    def plant_stale(self, leaf):
        """A rule with our mark that nobody wants, left over by a controller that has lost its memory."""
        gpu = self.random.choice(
            [gpu for gpu in range(self.plant.gpus) if self.plant.leaf_names[self.plant.leaf_of_gpu[gpu]] == leaf]
        )
        cable = self.random.choice(list(self.addresses.next_hops))
        body = Send(str(self.addresses.nics[gpu]), str(self.addresses.next_hops[cable]))
        rule = Rule.on(leaf, body, f"j{900 + self.random.randrange(9)}", 1)
        self.planted.add(rule)
        self.driver.rules[leaf].insert(self.random.randrange(len(self.driver.rules[leaf]) + 1), rule)
