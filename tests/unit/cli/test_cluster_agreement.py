"""`ropewalk cluster agreement` from outside."""

from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "moment.csv"
SMALL = ("--fabric", "leaf-spine:6x8x8", "--gpus-per-server", 4)


def test_the_replay_is_compared_with_packets_at_the_moments_that_were_named(ropewalk, tmp_path):
    page = tmp_path / "agreement.html"
    answer = ropewalk(
        "cluster", "agreement", EXAMPLE, *SMALL, "--at", "100s", "--iterations", 1, "--scale", 0.0005, "--json",
        "--page", page,
    )  # fmt: skip
    assert answer.code == 0, answer.stderr
    (moment,) = answer.json["moments"]
    assert (moment["at_s"], moment["scale"], answer.json["port"]) == (100.0, 0.0005, 100)
    assert {job["name"] for job in moment["jobs"] if job["over_links"]} == {"ring-a", "moe-b", "ring-c"}
    assert "By the replay" in page.read_text() or "by the replay" in page.read_text()


def test_policies_without_a_hash_are_compared_without_another_one(ropewalk):
    answer = ropewalk(
        "cluster", "agreement", EXAMPLE, *SMALL, "--at", "100s", "--iterations", 1, "--scale", 0.0005, "--routing",
        "source",
    )  # fmt: skip
    assert answer.code == 0, answer.stderr
    assert "The replay's iterations are" in answer.stdout
    assert "hashed by switches" not in answer.stdout


def test_a_moment_without_links_says_what_to_do(ropewalk):
    answer = ropewalk("cluster", "agreement", EXAMPLE, "--fabric", "leaf-spine:2x64x64", "--at", "100s")
    assert answer.code == 2
    assert "or a --fabric with smaller leafs" in answer.stderr


def test_a_scale_at_which_packets_of_a_moment_are_too_many_is_refused_with_what_helps_all_moments(ropewalk):
    look = ("cluster", "agreement", EXAMPLE, *SMALL, "--at", "100s", "--iterations", 1, "--most-events", "1e6")
    refused = ropewalk(*look, "--scale", 0.5)
    assert (refused.code, "at 100 s of moment.csv" in refused.stderr) == (2, True)
    assert "leave out --scale, and every moment has the largest that fits" in refused.stderr
    assert ropewalk(*look).code == 0
