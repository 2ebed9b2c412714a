"""Numbers and clusters that could mean something else are refused; terminals without UTF-8 get an answer."""

import io
import sys

import pytest


@pytest.mark.parametrize("number", ["1_000", "١٦", "１６", "1e3", "nan"])
def test_numbers_of_options_are_digits(ropewalk, number):
    answer = ropewalk("cost", "gpt2", "--batch", number)
    assert answer.code == 2
    assert "write it with the digits 0 to 9" in answer.stderr


def test_a_number_of_an_option_fits_64_bits(ropewalk):
    answer = ropewalk("cost", "gpt2", "--batch", "9" * 20)
    assert answer.code == 2
    assert f"--batch {'9' * 20} does not fit 64 bits: give a whole number such as 64" in answer.stderr


def test_a_cluster_of_one_number_is_refused(ropewalk):
    answer = ropewalk("simulate", "gpt2", "--cluster", "16")
    assert answer.code == 2
    assert "write 1x16 for one server" in answer.stderr


def test_trees_of_a_root_have_a_bound(ropewalk):
    answer = ropewalk("collective", "allreduce", "ring:4", "--trees-per-root", "1000000")
    assert answer.code == 2
    assert "give at most 1024" in answer.stderr


def test_a_terminal_without_utf_8_gets_an_answer(monkeypatch):
    from ropewalk.cli import run

    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert run(["simulate", "gpt2", "--cluster", "1x2", "--batch", "4"]) == 0
    out.flush()
    assert out.buffer.getvalue()


def test_a_trace_of_a_hundred_billion_jobs_is_refused(ropewalk, tmp_path):
    answer = ropewalk(
        "cluster", "generate", tmp_path / "jobs.csv", "--jobs", "99999999999", "--fabric", "leaf-spine:4x4x4"
    )
    assert answer.code == 2
    assert "ask for 10,000,000 or fewer" in answer.stderr
    assert not (tmp_path / "jobs.csv").exists()


def test_a_size_of_a_model_that_is_given_twice_is_refused(ropewalk):
    answer = ropewalk("cost", "gpt2:layers=2,layers=3")
    assert answer.code == 2
    assert "layers is given twice: give it once" in answer.stderr


@pytest.mark.parametrize("option", ["--tp", "--pp", "--cp", "--ep", "--micro-batch", "--interleave"])
@pytest.mark.parametrize("empty", ["", ","])
def test_a_list_without_entries_is_refused(ropewalk, option, empty):
    answer = ropewalk("plan", "gpt2", "--cluster", "1x2", option, empty)
    assert answer.code == 2
    assert f"{option} is empty: name at least one" in answer.stderr


def test_an_empty_list_of_testbeds_does_not_run_all(ropewalk):
    answer = ropewalk("lab", "suite", "--only", ",")
    assert answer.code == 2
    assert "--only is empty: name at least one" in answer.stderr


def test_an_empty_device_is_refused(ropewalk):
    answer = ropewalk("cost", "gpt2", "--device", "")
    assert answer.code == 2
    assert "there is no device ''" in answer.stderr


@pytest.mark.parametrize(
    ("name", "said"), [("", "name every job"), ("a\nb", "cannot be printed"), ("\x1b[31m", "\\x1b")]
)
def test_names_of_jobs_can_be_printed(ropewalk, name, said):
    answer = ropewalk("cluster", "allocate", "--fabric", "leaf-spine:4x4x4", "--gpus", "2", "--job", name)
    assert answer.code == 2
    assert said in answer.stderr


def test_a_message_quotes_no_control_characters(ropewalk, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,gpus,arrival_s,duration_s,model\n\x1b[31mred,1,0,1,bert\n")
    answer = ropewalk("cluster", "explain", jobs, "--job", "nope", "--fabric", "leaf-spine:4x4x4")
    assert answer.code == 2
    assert "\\x1b[31mred" in answer.stderr
    assert "\x1b" not in answer.stderr


def test_a_terminal_of_no_columns_gets_the_whole_table(ropewalk, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    answer = ropewalk("list", "stacks")
    assert answer.code == 0
    assert "megatron" in answer.stdout


def test_an_output_that_cannot_be_written_is_refused_before_the_work(ropewalk):
    answer = ropewalk("simulate", "gpt2", "--cluster", "1x2", "--page", "/proc/self/mem")
    assert answer.code == 2
    assert "cannot write /proc/self/mem: " in answer.stderr
    assert answer.stdout == ""


def test_a_folder_that_cannot_be_made_is_a_message(ropewalk, tmp_path):
    plan = tmp_path / "plan.json"
    assert ropewalk("simulate", "gpt2", "--cluster", "1x2", "--batch", "4", "--plan", plan).code == 0
    answer = ropewalk("export", plan, "--to", "run", "--output", "/proc/nowhere")
    assert answer.code == 2
    assert "cannot write /proc/nowhere: " in answer.stderr


def test_a_unit_is_for_a_user_that_can_exist(ropewalk):
    answer = ropewalk("serve", "systemd-unit", "--user", "a b\nExecStartPre=/bin/true")
    assert answer.code == 2
    assert "is not the name of a user" in answer.stderr


def test_all_to_all_of_16_000_gpus_is_refused_with_a_list_that_is_answered(ropewalk):
    asked = ("expect", "2000x8", "--device", "h100", "-b", "8", "-e", "8", "--collective")
    refused = ropewalk(*asked, "all_reduce,alltoall")
    assert refused.code == 2
    assert "alltoall is simulated between 8,192 GPUs or fewer, not 16,000: give --collective all_red" in refused.stderr
    assert ropewalk(*asked, "all_reduce").code == 0


def test_memory_that_is_not_there_is_a_message(ropewalk, monkeypatch):
    def fails(**_):
        raise MemoryError

    monkeypatch.setattr("ropewalk.cli.app", fails)
    answer = ropewalk("list")
    assert answer.code == 2
    assert "not enough memory" in answer.stderr
