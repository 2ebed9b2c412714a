"""The part of a kernel's policy routing that rules use, in memory: answers `ip` as a leaf would."""

import json
import re
from ipaddress import IPv4Address, IPv4Network

from ropewalk.serve.rules.driver import DriverError
from ropewalk.serve.rules.linux_state import READ


class FakeKernel:
    """Rules and routes of every leaf; `down` are uplinks that carry nothing, by the next hop behind them."""

    settles_s = 3.0

    def __init__(self):
        self.rules, self.routes, self.down = {}, {}, set()
        self.lines = []
        """Everything that was told, by device."""
        self.stops_after = None
        """Lines after which the kernel is gone."""

    def run(self, device, script):
        rules, routes = self.rules.setdefault(device, []), self.routes.setdefault(device, [])
        if script == READ:
            return "\n".join(json.dumps(one) for one in (self._shown(rules), self._live(routes), self._interfaces()))
        refused = []
        for line in script.splitlines()[1:-1]:
            if self.stops_after is not None:
                if self.stops_after == 0:
                    raise DriverError(f"{device}: gone: try again")
                self.stops_after -= 1
            self.lines.append((device, line))
            if not self._do(line.split(), rules, routes):
                refused.append(line)
        if refused:
            raise DriverError(f"{device}: {refused[0]}: try again")
        return ""

    def cut(self, next_hop):
        """A cable dies: the kernel takes its routes away."""
        self.down.add(next_hop)
        for routes in self.routes.values():
            routes[:] = [one for one in routes if one.get("gateway") != next_hop]

    def _do(self, words, rules, routes):
        named = dict(zip(words[2::2], words[3::2], strict=False))
        if words[0] == "rule":
            rule = {"priority": int(named["pref"]), "table": named["lookup"], "protocol": named["protocol"]}
            rule |= {"src": named.get("from", "all")}
            if "to" in named:
                where = IPv4Network(named["to"])
                rule |= {"dst": str(where.network_address)} | (
                    {"dstlen": where.prefixlen} if where.prefixlen < 32 else {}
                )
            if (words[1] == "add") == (rule in rules):
                return False
            rules.append(rule) if words[1] == "add" else rules.remove(rule)
            return True
        hole = "blackhole" in words
        found = re.search(r"table (\d+) proto 82 metric (\d+)", " ".join(words))
        route = {"dst": "default", "table": found[1], "metric": int(found[2])} | ({"type": "blackhole"} if hole else {})
        if "via" in words:
            route["gateway"] = words[words.index("via") + 1]
        if words[1] == "del":
            if route not in routes:
                return False
            routes.remove(route)
            return True
        if route.get("gateway") in self.down:
            return False
        place = (route["table"], route["metric"])
        routes[:] = [one for one in routes if (one["table"], one["metric"]) != place]
        routes.append(route)
        return True

    def _shown(self, rules):
        ends = [{"priority": 0, "src": "all", "table": "255"}, {"priority": 32766, "src": "all", "table": "254"}]
        return sorted([*ends, *rules], key=lambda rule: rule["priority"])

    def _live(self, routes):
        return list(routes)

    def _interfaces(self):
        return [
            {"flags": ["UP"], "addr_info": [{"local": str(IPv4Address(hop) - 1), "prefixlen": 31}]} for hop in self.down
        ]

    def way(self, device, source):
        """Next hop of what comes from a NIC: of the first rule whose table has a route, "hold", or None for main."""
        for rule in self._shown(self.rules.get(device, [])):
            if rule["src"] == source:
                found = [one for one in self.routes[device] if one["table"] == rule["table"]]
                if found:
                    return min(found, key=lambda one: one["metric"]).get("gateway", "hold")
        return None
