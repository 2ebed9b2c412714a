"""Every published schema is recognised and read to the same record; data here are tiny and our own."""

import gzip
import json

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces import FORMATS, Selection, TraceJob, read_trace, sniff, write_jobs

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,u1,vc0,8,32,1,COMPLETED,2020-06-03 00:01:00,2020-06-03 00:02:00,2020-06-03 00:03:40,100,60
8,u2,vc0,0,4,1,COMPLETED,2020-06-03 00:00:00,2020-06-03 00:00:00,2020-06-03 00:01:00,60,0
9,u2,vc1,16,64,2,FAILED,2020-06-03 00:00:00,2020-06-03 00:00:00,2020-06-03 01:00:00,3600,0
10,u3,vc1,1,4,1,CANCELLED,2020-06-04 00:00:00,None,None,0,0
"""
SEREN = """job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
a,u,1,8,96,Pretrain,COMPLETED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:10+08:00,2023-03-01 08:01:10+08:00,60,10,480
b,u,2,16,192,SFT,FAILED,2023-03-01 00:00:30+00:00,2023-03-01 00:00:40+00:00,2023-03-01 00:01:40+00:00,60,10,960
"""
MURI = """job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,\
resource_time_0,resource_time_1,resource_time_2,priority
0,4,1500,20,vgg16,16,10000,3000,500,8,7,1,0
1,1,4500,3,dqn,128,1500,0,500,4,8,0.5,1
"""
TIRESIAS = """job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,0,606,vgg19,164,30
1,8,30,133,vgg11,147,23
"""
ITP = """job_id,submission_time,duration,num_gpu
6b2d,16566,3890,4
7c3e,16570,0,8
8d4f,16000,100,16
"""
ELASTICFLOW = """job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration
6b2d,16566,40285,bert,21347,64,4,3890
"""
GEN_PARALLEL = """u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status
0,1,8,1,1,0,84,0,Pass
1,1,0,1,1,94,87,0,Pass
2,2,16,1,2,151,83,90,Failed
"""
GAVEL = (
    "ResNet-50 (batch size 64)\tpython3 main.py -b 64 %s/data\t--num_minibatches\t1\t900\t0.000000\t4\n"
    "CycleGAN\tpython3 gan.py\t--n_steps\t1\t30\t12.500000\t1\n"
    "LM (batch size 5)\tpython3 main.py\t--steps\t1\t30\t13.000000\t0\n"
)


def _philly(**changes):
    job = {
        "status": "Pass",
        "vc": "v",
        "jobid": "application_1",
        "user": "u",
        "submitted_time": "2017-10-03 12:00:00",
        "attempts": [
            {
                "start_time": "2017-10-03 12:01:00",
                "end_time": "2017-10-03 12:02:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}],
            },
            {"start_time": "2017-10-03 13:00:00", "end_time": "2017-10-03 13:00:30", "detail": []},
        ],
    }
    return job | changes


def _trace(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_trace(path, **options)


def test_helios_jobs_arrive_at_their_submission_and_jobs_without_gpus_or_run_are_counted(tmp_path):
    trace = _trace(tmp_path, HELIOS)
    assert trace.format == "helios"
    assert trace.jobs == (
        TraceJob("9", 16, 0.0, 3600.0, user="u2", state="FAILED"),
        TraceJob("7", 8, 60.0, 100.0, user="u1", state="COMPLETED"),
    )
    assert trace.skipped == (("never ran", 1), ("requested no GPU", 1))


def test_a_selection_keeps_states_times_and_the_first_jobs(tmp_path):
    assert [j.name for j in _trace(tmp_path, HELIOS, selection=Selection(states=frozenset({"FAILED"}))).jobs] == ["9"]
    late = _trace(tmp_path, HELIOS, selection=Selection(since_s=1591142401.0))
    assert ("arrived too early", 1) in late.skipped
    assert [job.name for job in late.jobs] == ["7"]
    assert [j.name for j in _trace(tmp_path, HELIOS, selection=Selection(first=1)).jobs] == ["9"]
    assert [j.name for j in _trace(tmp_path, HELIOS, selection=Selection(most_gpus=8)).jobs] == ["7"]


def test_acme_times_count_with_their_offset(tmp_path):
    trace = _trace(tmp_path, SEREN)
    assert trace.format == "acme"
    assert [(job.name, job.gpus, job.arrival_s, job.duration_s) for job in trace.jobs] == [
        ("a", 8, 0.0, 60.0),
        ("b", 16, 30.0, 60.0),
    ]


def test_kalos_has_more_columns(tmp_path):
    head, *rows = SEREN.splitlines()
    text = "\n".join([head + ",mem_per_pod_GB,shared_mem_per_pod,fail_time,stop_time", *(r + ",1,1,," for r in rows)])
    assert len(_trace(tmp_path, text).jobs) == 2


def test_muri_counts_in_milliseconds(tmp_path):
    trace = _trace(tmp_path, MURI)
    assert trace.format == "philly-muri"
    assert trace.jobs[0] == TraceJob("0", 4, 0.0, 10.0, 20, "vgg16", 16, communication_share=1 / 500)
    assert trace.jobs[1].arrival_s == 3.0


def test_muri_says_which_part_of_an_iteration_is_the_networks(tmp_path):
    trace = _trace(tmp_path, MURI.replace("8,7,1,0", "8,7,200,0"))
    assert trace.jobs[0].communication_share == 0.4
    with pytest.raises(ClusterError, match=r"line 2: resource_time_2 is 500 of an iteration_time of 500"):
        _trace(tmp_path, MURI.replace("8,7,1,0", "8,7,500,0"))


def test_tiresias_counts_in_seconds(tmp_path):
    trace = _trace(tmp_path, TIRESIAS)
    assert trace.format == "tiresias"
    assert trace.jobs[1] == TraceJob("1", 8, 30.0, 147.0, 133, "vgg11")


def test_itp_says_sizes_times_and_nothing_else(tmp_path):
    trace = _trace(tmp_path, ITP)
    assert trace.format == "itp"
    assert trace.jobs == (TraceJob("8d4f", 16, 0.0, 100.0), TraceJob("6b2d", 4, 566.0, 3890.0))
    assert trace.skipped == (("never ran", 1),)


def test_elasticflow_has_deadlines_on_the_clock_of_arrivals(tmp_path):
    trace = _trace(tmp_path, ELASTICFLOW)
    assert trace.format == "elasticflow"
    assert trace.jobs == (TraceJob("6b2d", 4, 0.0, 3890.0, 40285, "bert", 64, deadline_s=4781.0),)


def test_gen_parallel_counts_the_intervals_of_jobs_that_are_left_out(tmp_path):
    trace = _trace(tmp_path, GEN_PARALLEL)
    assert trace.format == "gen-parallel"
    assert trace.jobs == (
        TraceJob("0", 8, 0.0, 84.0, user="1", state="Pass"),
        TraceJob("2", 16, 245.0, 83.0, user="2", state="Failed"),
    )
    assert trace.skipped == (("requested no GPU", 1),)
    with pytest.raises(ClusterError, match=r"line 3: interval is empty"):
        _trace(tmp_path, GEN_PARALLEL.replace(",94,", ",,"))


def test_gavel_has_models_and_steps_but_no_durations(tmp_path):
    trace = _trace(tmp_path, GAVEL, "t.trace")
    assert trace.format == "philly-gavel"
    assert trace.jobs == (
        TraceJob("1", 4, 0.0, iterations=900, model="ResNet-50", batch=64),
        TraceJob("2", 1, 12.5, iterations=30, model="CycleGAN"),
    )
    assert trace.skipped == (("requested no GPU", 1),)


def test_philly_adds_up_attempts_and_takes_the_gpus_of_the_first(tmp_path):
    entries = [_philly(), _philly(jobid="b", attempts=[]), _philly(jobid="c", submitted_time="None")]
    trace = _trace(tmp_path, json.dumps(entries, indent=1), "cluster_job_log")
    assert trace.format == "philly"
    assert trace.jobs == (TraceJob("application_1", 3, 0.0, 90.0, user="u", state="Pass"),)
    assert dict(trace.skipped) == {"requested no GPU": 1, "has no submission time": 1}


def test_philly_jobs_longer_than_a_piece_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("ropewalk.documents.opening.PIECE", 7)
    text = json.dumps([_philly(jobid=str(n)) for n in range(5)])
    assert [job.name for job in _trace(tmp_path, text, "log").jobs] == list("01234")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"status": "Pass"', "line 1: Expecting"),
        ("[\n{}\n{}]", "line 3: there is neither ',' nor ']'"),
        ("[]\n[]", "line 2: something follows"),
        ("[\n\n7]", "line 3: an element is not an object"),
        ('[\n{"status": "Pass", "wrong": 1}]', "line 2: the key 'wrong' is unknown"),
        ("[" + json.dumps(_philly(status="Odd")) + "]", "the status 'Odd' is unknown"),
        ("[" + json.dumps(_philly(submitted_time="soon")) + "]", "submitted_time is 'soon'"),
        ("[" + json.dumps(_philly(attempts=[{"start_time": None}])) + "]", "an attempt is not what it should be"),
    ],
)
def test_wrong_philly_logs_are_told_with_their_line(tmp_path, text, message):
    with pytest.raises(ClusterError, match=r"trace .*log: ") as problem:
        _trace(tmp_path, text, "log")
    assert message in str(problem.value)


PAI_JOBS = "j1,i1,u,Terminated,100.0,900.0\nj2,i2,u,Running,120.0,\nj3,i3,u,Terminated,50.0,60.0\n"
PAI_TASKS = (
    "j1,ps,2,Terminated,200.0,260.0,600.0,10.0,,CPU\nj1,worker,3.0,Terminated,210.0,300.0,600.0,10.0,50.0,MISC\n"
    "j2,worker,1,Running,130.0,,600.0,10.0,100.0,MISC\nj3,x,1,Terminated,50.0,60.0,1.0,1.0,,CPU\n"
)


def test_pai_jobs_have_the_gpus_and_the_time_of_their_tasks(tmp_path):
    (tmp_path / "pai_task_table.csv").write_text(PAI_TASKS)
    trace = _trace(tmp_path, PAI_JOBS, "pai_job_table.csv", format_name="pai")
    assert trace.jobs == (TraceJob("j1", 2, 0.0, 100.0, user="u", state="Terminated"),)
    assert dict(trace.skipped) == {"was still running": 1, "requested no GPU": 1}


def test_pai_tables_with_headers_are_recognised(tmp_path):
    heads = FORMATS["pai"].required
    (tmp_path / "pai_task_table.csv").write_text(PAI_TASKS)
    text = ",".join(heads) + "\n" + PAI_JOBS
    assert _trace(tmp_path, text, "pai_job_table.csv").format == "pai"


def test_pai_needs_its_task_table(tmp_path):
    with pytest.raises(ClusterError, match=r"pai_task_table\.csv is not beside it"):
        _trace(tmp_path, PAI_JOBS, "pai_job_table.csv", format_name="pai")


def test_own_jobs_keep_their_clock_and_come_back_as_written(tmp_path):
    jobs = (
        TraceJob("a", 8, 2.5, 60.0, 10, "bert", 16, "ring", 0.1, 10**9, 0.25, 99.5, 70.0, "u", "DONE"),
        TraceJob("b, the second", 4, 3.1, None, 7),
    )
    path = tmp_path / "jobs.csv"
    write_jobs(jobs, path)
    assert read_trace(path).jobs == jobs


def test_packed_traces_are_unpacked(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TIRESIAS.encode()))
    assert len(read_trace(path).jobs) == 2
    path.write_bytes(gzip.compress(TIRESIAS.encode())[:-9])
    with pytest.raises(ClusterError, match=r"gzip|UTF-8"):
        read_trace(path)


OWN = "name,gpus,arrival_s,duration_s\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (OWN, "has no job to replay"),
        (OWN + "a,8,-1,60\n", "line 2: arrival_s is -1, which is negative: give 0 or more"),
        (OWN + "a,8,0,-60\n", "line 2: duration_s is -60, which is negative"),
        (OWN + "a,8,0,0\n", "line 2: duration_s is 0: give more than 0"),
        (OWN + "a,0,0,60\n", "line 2: gpus is 0, which is below 1"),
        (OWN + "a,2.5,0,60\n", "line 2: gpus is '2.5': give a whole number"),
        (OWN + "a,8,0\n", "line 2: there are 3 fields, but 4 columns"),
        (OWN + "a,8,0,\n", "line 2: there is neither duration_s nor iterations"),
        (OWN + "a,8,inf,60\n", "line 2: arrival_s is 'inf': give a number"),
        (OWN + "a,8,0,60\n\na,8,0,60\n", "line 4: the job 'a' is also on line 2"),
        (OWN + ",8,0,60\n", "line 2: name is empty"),
        (OWN + 'a,8,0,"6\n', "fix the CSV"),
        ("name,gpus,arrival_s,hurry\na,1,0,1\n", "line 1: the column 'hurry' is unknown"),
        ("name,gpus,duration_s\na,1,1\n", "line 1: the column 'arrival_s' is missing"),
        ("name,gpus,arrival_s,gpus,duration_s\na,1,0,1,1\n", "'gpus' occurs twice"),
        ("what,ever\n1,2\n", "line 1: the format is not recognised"),
        (OWN.replace("duration_s", "duration_s,deadline_s") + "a,8,50,60,10\n", "not after its arrival"),
        (HELIOS.replace("FAILED", "ODD"), "line 4: the state 'ODD' is unknown"),
        (HELIOS.replace("2020-06-03 00:01:00", "yesterday", 1), "line 2: submit_time is 'yesterday'"),
        (GAVEL.replace("\t4\n", "\t-4\n"), "line 1: GPUs is -4, which is negative"),
    ],
)
def test_bad_traces_are_told_with_file_line_and_remedy(tmp_path, text, message):
    with pytest.raises(ClusterError, match=r"t\.csv") as problem:
        _trace(tmp_path, text)
    assert message in str(problem.value)


def test_an_incomplete_header_is_of_the_format_that_it_has_most_of(tmp_path):
    """Three of the four columns of an ITP log, and no more of any longer header."""
    with pytest.raises(ClusterError, match=r"the column 'num_gpu' is missing"):
        _trace(tmp_path, "job_id,submission_time,duration\na,0,60\n")


def test_many_mistakes_are_cut_short(tmp_path):
    with pytest.raises(ClusterError, match=r"21 findings") as problem:
        _trace(tmp_path, OWN + "".join(f"a{n},8,-1,60\n" for n in range(1000)))
    assert "line 21" in str(problem.value)
    assert "line 22" not in str(problem.value)


def test_unknown_formats_and_missing_files_are_told(tmp_path):
    with pytest.raises(ClusterError, match="'slurm' is unknown: use one of jobs, helios"):
        _trace(tmp_path, OWN, format_name="slurm")
    with pytest.raises(ClusterError, match="does not exist"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(ClusterError, match="is a folder"):
        read_trace(tmp_path)
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClusterError, match="UTF-8"):
        sniff(tmp_path / "b")


def test_jobs_that_could_not_be_read_back_are_not_written(tmp_path):
    with pytest.raises(ClusterError, match="gpus is 0"):
        write_jobs([TraceJob("a", 0, 0.0, 1.0)], tmp_path / "jobs.csv")
    with pytest.raises(ClusterError, match="no job to write"):
        write_jobs([], tmp_path / "jobs.csv")
    assert not (tmp_path / "jobs.csv").exists()
