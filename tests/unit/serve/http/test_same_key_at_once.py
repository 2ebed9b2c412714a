"""Many clients with the same idempotency key at the same moment: one change, one answer for all of them."""

import threading


def at_once(number, ask):
    """Answers of so many threads that ask together."""
    gate, replies = threading.Barrier(number), [None] * number

    def one(place):
        gate.wait()
        replies[place] = ask(place)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_clients_with_one_key_submit_one_job(served):
    body = {"name": "a", "gpus": 2}
    replies = at_once(12, lambda _: served.ask("POST", "/v1/jobs", body, role="submit", Idempotency_Key="k"))
    assert {(reply.status, reply.body) for reply in replies} == {(201, replies[0].body)}
    assert [job["id"] for job in served.ask("GET", "/v1/jobs").json["jobs"]] == ["j1"]


def test_of_different_requests_under_one_key_one_is_carried_out(served):
    sizes = [2, 4]

    def ask(place):
        return served.ask("POST", "/v1/jobs", {"name": "a", "gpus": sizes[place % 2]}, Idempotency_Key="k")

    replies = at_once(12, ask)
    (job,) = served.ask("GET", "/v1/jobs").json["jobs"]
    expected = [201 if sizes[place % 2] == job["gpus"] else 409 for place in range(12)]
    assert [reply.status for reply in replies] == expected


def test_two_tokens_with_one_key_have_a_job_each(served):
    roles = ["submit", "operate"]

    def ask(place):
        return served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2}, role=roles[place % 2], Idempotency_Key="k")

    replies = at_once(8, ask)
    assert {reply.status for reply in replies} == {201}
    assert len({reply.json["id"] for reply in replies}) == 2
    owners = {job["owner"].split("/")[0] for job in served.ask("GET", "/v1/jobs").json["jobs"]}
    assert owners == {"submit", "operate"}


def test_reports_of_one_job_at_once_are_one_report(served):
    served.ask("POST", "/v1/jobs", {"name": "a", "gpus": 2})
    body = {"step": 10, "seconds": 1.0}
    replies = at_once(8, lambda _: served.ask("POST", "/v1/jobs/j1/progress", body))
    assert {reply.status for reply in replies} == {200}
    assert served.ask("GET", "/v1/jobs/j1").json["speed"]["reports"] == 1
