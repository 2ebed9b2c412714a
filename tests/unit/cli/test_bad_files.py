"""Files that once took all memory or ended in a traceback, given to every command that reads their kind."""

import gzip

import pytest

BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGED = "a: &a {k: 1}\n" + "".join(
    f"{new}: &{new}\n  <<: [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
DIGITS = "9" * 5000
BAD = {
    "bomb.yaml": (BOMB, "entries with its aliases written out"),
    "merged.yaml": (MERGED, "entries with its aliases written out"),
    "deep.yaml": ("[" * 100_000, "nested too deeply"),
    "deep.json": ("[" * 100_000, "nested too deeply"),
    "digits.yaml": (f"servers: {DIGITS}", "has 5000 digits"),
    "digits.json": (f'{{"servers": {DIGITS}}}', "has 5000 digits"),
}
OF_ANY_KIND = {
    "fabric": "fabric {}",
    "collective": "collective allreduce {}",
    "cost": "cost {}",
    "simulate": "simulate gpt2 --cluster {}",
    "plan": "plan gpt2 --cluster {}",
    "overlap": "overlap {} --cluster 1x2",
    "pipeline": "pipeline {} --cluster 1x2",
    "cluster replay": "cluster replay {jobs} --cluster {}",
}
OF_JSON = {
    "export": "export {} --to ranks --output {out}",
    "plan --from": "plan --from {}",
    "cluster allocate": "cluster allocate --gpus 4 --fabric leaf-spine:2x4x4 --gpus-per-server 2 --state {}",
    "cluster explain": "cluster explain --gpus 4 --fabric leaf-spine:2x4x4 --gpus-per-server 2 --state {}",
    "cluster rules": "cluster rules a --fabric leaf-spine:2x4x4 --gpus-per-server 2 --state {} --to {out}",
    "cluster status": "cluster status --state {}",
    "cluster queue": "cluster queue --state {}",
    "cluster submit": "cluster submit a --gpus 2 --state {}",
    "cluster what-if": "cluster what-if --gpus 2 --state {}",
    "lab run": "lab run {}",
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", OF_ANY_KIND | OF_JSON)
def test_a_bad_document_is_refused_by_every_command_that_reads_it(ropewalk, tmp_path, command, name):
    if command in OF_JSON and name.endswith(".yaml"):
        pytest.skip("it reads JSON")
    text, said = BAD[name]
    (tmp_path / name).write_text(text)
    places = {"jobs": tmp_path / "jobs.csv", "out": tmp_path / "out"}
    places["jobs"].write_text("name,gpus,arrival_s,duration_s,model\na,8,0,10,vgg16\n")
    answer = ropewalk(*(OF_ANY_KIND | OF_JSON)[command].format(tmp_path / name, **places).split())
    assert (answer.code, answer.stdout) == (2, "")
    assert said in answer.stderr
    assert len(answer.stderr) < 1000
    assert not places["out"].exists()


def test_a_packed_trace_with_a_flipped_bit_is_refused(ropewalk, tmp_path):
    rows = "".join(f"j{number},8,{number},10,vgg16\n" for number in range(2000))
    packed = bytearray(gzip.compress(f"name,gpus,arrival_s,duration_s,model\n{rows}".encode()))
    packed[len(packed) // 2] ^= 4
    (tmp_path / "jobs.csv.gz").write_bytes(packed)
    answer = ropewalk("cluster", "replay", tmp_path / "jobs.csv.gz")
    assert answer.code == 2
    assert "is damaged gzip data" in answer.stderr


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,8,1e308,10,vgg16", "at most 1e+11"),
        ("a,8,0,1e308,vgg16", "at most 1e+11"),
        ("a,١٦,0,10,vgg16", "give a whole number"),
        ("a,１６,0,10,vgg16", "give a whole number"),
        ("a,1_0,0,10,vgg16", "give a whole number"),
        ("a,8,0,1_0,vgg16", "give a number"),
        ("a,8,nan,10,vgg16", "arrival_s is nan, which stands for nothing: fill it in"),
        ("a,8,,10,vgg16", "arrival_s is empty: fill it in"),
        (f"a,{DIGITS},0,10,vgg16", "… (5,001 characters)': give a whole number"),
    ],
)
def test_numbers_of_jobs_are_plain_and_of_this_world(ropewalk, tmp_path, row, said):
    (tmp_path / "jobs.csv").write_text(f"name,gpus,arrival_s,duration_s,model\n{row}\n")
    answer = ropewalk("cluster", "replay", tmp_path / "jobs.csv")
    assert answer.code == 2
    assert said in answer.stderr
    assert len(answer.stderr) < 1000


def test_deadlines_are_needed_to_order_by_them(ropewalk, tmp_path):
    (tmp_path / "jobs.csv").write_text("name,gpus,arrival_s,duration_s,model\na,8,0,10,vgg16\n")
    answer = ropewalk("cluster", "replay", tmp_path / "jobs.csv", "--queue", "edf")
    assert answer.code == 2
    assert "no job of" in answer.stderr


@pytest.mark.parametrize("command", ["replay", "snapshot --at 2s"])
def test_a_trace_is_not_written_over_by_its_page(ropewalk, tmp_path, command):
    (tmp_path / "jobs.csv").write_text("name,gpus,arrival_s,duration_s,model\na,8,0,10,vgg16\n")
    answer = ropewalk("cluster", *command.split(), tmp_path / "jobs.csv", "--page", tmp_path / "jobs.csv")
    assert answer.code == 2
    assert "this command reads it" in answer.stderr


def test_a_file_whose_name_is_not_utf_8_is_drawn(ropewalk, tmp_path):
    name = b"\xff.yaml".decode("utf-8", "surrogateescape")
    (tmp_path / name).write_text("hosts: [{name: a}, {name: b}]\nlinks:\n- [a, b, 1Gbps]\n")
    assert ropewalk("fabric", tmp_path / name, "--page", tmp_path / "page.html").code == 0
    assert "\ufffd" in (tmp_path / "page.html").read_text(encoding="utf-8")
