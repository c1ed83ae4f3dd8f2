"""Problems and plans as CSV: what is read, what is written, and what is refused at which place."""

import io

import pytest
from every import every
from hypothesis import given, strategies as st

from tirlite.diag import PlanError
from tirlite.plan import Plan, Pool, Problem, Request, check, read_csv, solve, write_csv
from tirlite.sizes import Dim, evaluate

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
H = "id,lower,upper,size,alignment,gaps,offset\n"


def read(text, **options):
    return read_csv(io.StringIO(text, newline=""), **options)


def refused(text, **options):
    with pytest.raises(PlanError) as caught:
        read(text, **options)
    return str(caught.value)


def test_a_buffer_a_line():
    assert read(EXAMPLE) == Problem(
        (
            Request("b1", 4, (0, 3)),
            Request("b2", 4, (3, 9)),
            Request("b3", 4, (0, 9)),
            Request("b4", 4, (9, 21)),
            Request("b5", 4, (0, 21)),
        )
    )


def test_columns_come_in_any_order_and_others_are_ignored():
    text = "note,size,hint,upper,id,lower\nx,18,3,12,1,6\n,15,,10,0,5\n"
    assert read(text).requests == (Request("1", 18, (6, 12)), Request("0", 15, (5, 10)))


@pytest.mark.parametrize("header", ["start,size,buffer,upper", "begin,size,buffer_id,upper"])
def test_names_that_others_use(header):
    assert read(f"{header}\n6,18,1,12\n").requests == (Request("1", 18, (6, 12)),)


def test_names_of_our_own_come_before_those_that_others_use():
    (request,) = read("start,id,buffer,lower,upper,size\n7,x,y,6,12,18\n").requests
    assert (request.id, request.live) == ("x", ((6, 12),))


def test_ends_are_inclusive_in_a_column_of_that_name():
    assert read("start,size,id,end,gaps\n6,18,1,11,7-8\n").requests == (Request("1", 18, ((6, 7), (9, 12))),)


def test_alignment_gaps_and_fixed_offsets():
    text = H + "a,6,12,18,2,7-9 ,\nb,5,10,15,,9-10,30\nc,0,9,1,1,2-3 5-6 0-1,\n"
    a, b, c = read(text).requests
    assert a == Request("a", 18, ((6, 7), (9, 12)), align=2)
    assert b == Request("b", 15, (5, 9), fixed=30)
    assert c == Request("c", 1, ((1, 2), (3, 5), (6, 9)))


def test_sizes_may_be_expressions_over_positive_integers():
    text = "id,lower,upper,size_expr,size@1,size@4\na,0,2,16*N,16,64\nb,1,3,ceil(N/2)*8,8,16\nc,2,3,12,12,12\n"
    problem = read(text, facts="N<=64, N%4==0")
    (n,) = problem.dims
    assert (n.name, n.min, n.max, n.multiple_of) == ("N", 1, 64, 4)
    assert [evaluate(request.size, {n: 4}) for request in problem.requests] == [64, 16, 12]
    assert read(text, bind={"N": 4}) == Problem(
        (Request("a", 64, (0, 2)), Request("b", 16, (1, 3)), Request("c", 12, (2, 3)))
    )


def test_facts_may_be_dims_and_only_some_names_bound():
    n = Dim("n", max=9)
    problem = read("id,lower,upper,size_expr\na,0,2,n*m\n", facts={"n": n}, bind={"m": 3})
    assert problem.requests[0].size == 3 * n


def test_pools_are_those_given():
    assert read(EXAMPLE, pools=[Pool("global", capacity=12)]).memories["global"].capacity == 12


def test_a_path_is_read_too(tmp_path):
    path = tmp_path / "input.csv"
    path.write_text(EXAMPLE)
    assert read_csv(path) == read_csv(str(path)) == read(EXAMPLE)


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE,
        EXAMPLE.removesuffix("\n"),
        EXAMPLE + "\n\n",
        EXAMPLE.replace("\n", "\r\n"),
        "\ufeff" + EXAMPLE,
        "id,lower,upper,size\n",
        "\n" + EXAMPLE.replace("\n", "\n \t\n\n"),
        "\ufeff\r\n" + EXAMPLE.replace("\n", "\r\n\r\n"),
        'size , id,lower,note,upper\n 4,a , 0,"x, ""y""",3\n+4,b,0,-,3\n',
    ],
)
def test_what_was_read_is_written_byte_for_byte(text, tmp_path):
    path, copy = tmp_path / "input.csv", tmp_path / "output.csv"
    path.write_bytes(text.encode())
    write_csv(read_csv(path), target=copy)
    assert copy.read_bytes() == path.read_bytes()


def test_a_plan_adds_its_offsets():
    problem = read(EXAMPLE)
    plan = Plan.of(problem, {"b1": ("p", 8), "b2": ("p", 8), "b3": ("p", 4), "b4": ("p", 4), "b5": ("p", 0)})
    text = write_csv(problem, plan)
    assert text == ("id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\nb5,0,21,4,0\n")
    assert [request.fixed for request in read(text).requests] == [8, 8, 4, 4, 0]


def test_offsets_take_the_place_of_those_that_were_there():
    problem = read("id,offset,lower,upper,size\r\na,,0,2,4\r\nb,4,0,2,4\r\n")
    text = write_csv(problem, solve(problem, "share"))
    assert text == "id,offset,lower,upper,size\r\na,8,0,2,4\r\nb,4,0,2,4\r\n"


def test_slots_stand_one_behind_the_other_and_aligned():
    problem = read("id,lower,upper,size,alignment\na,0,2,5,1\nb,0,2,8,8\nc,0,2,1,1\n")
    text = write_csv(problem, solve(problem, "none"))
    assert [line.rsplit(",")[-1] for line in text.splitlines()] == ["offset", "0", "8", "16"]


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_offsets_that_were_written_are_a_plan_when_read(strategy):
    rows = "".join(f"{i},{i % 7},{i % 7 + 1 + i % 3},{1 + i * 37 % 50},{1 << i % 4}\n" for i in range(60))
    problem = read("id,lower,upper,size,alignment\n" + rows)
    placed = read(write_csv(problem, solve(problem, strategy)))
    plan = Plan.of(placed, {request.id: ("global", request.fixed) for request in placed.requests})
    assert check(placed, plan)


def test_symbolic_offsets_have_a_column_of_their_own():
    problem = read('id,lower,upper,size_expr\na,0,3,"max(N, 8)"\nb,1,3,4*N\nc,1,3,4\n')
    (n,) = problem.dims
    plan = solve(problem, "none")
    assert write_csv(problem, plan).splitlines() == [
        "id,lower,upper,size_expr,offset_expr",
        'a,0,3,"max(N, 8)",0',
        'b,1,3,4*N,"max(N, 8)"',
        'c,1,3,4,"4*N + max(N, 8)"',
    ]
    assert write_csv(problem, plan.at({n: 2})).splitlines()[3] == "c,1,3,4,16"


def test_a_problem_that_was_no_table_becomes_one():
    n = Dim("n")
    requests = (
        Request("a,b", n + 1, ((0, 2), (4, 5), (7, 9)), align=8),
        Request("c", 2 * n, (1, 3), fixed=16),
    )
    problem = Problem(requests)
    text = write_csv(problem)
    assert text == ('id,lower,upper,size_expr,alignment,gaps,offset\n"a,b",0,9,n + 1,8,2-4 5-7,\nc,1,3,2*n,1,,16\n')
    assert read(text, facts={"n": n}) == problem


INTERVALS = st.tuples(st.integers(-50, 50), st.integers(1, 9)).map(lambda pair: (pair[0], sum(pair)))
REQUESTS = st.builds(
    lambda name, size, live, align, steps: Request(
        name, size, tuple(live), align=align, fixed=None if steps is None else steps * align
    ),
    name=st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), min_size=1, max_size=8),
    size=st.integers(0, 1 << 70),
    live=st.lists(INTERVALS, min_size=1, max_size=4),
    align=st.sampled_from([1, 8, 64]),
    steps=st.none() | st.integers(0, 9),
)


@given(st.lists(REQUESTS, max_size=6, unique_by=lambda request: request.id))
def test_any_problem_that_is_written_is_read_again(requests):
    problem = Problem(tuple(requests))
    text = write_csv(problem)
    again = read(text)
    assert again == problem
    assert write_csv(again) == text


def test_a_table_cannot_tell_everything():
    with pytest.raises(PlanError, match="several memories"):
        write_csv(Problem((Request("a", 4, (0, 2)), Request("b", 4, (0, 2), scope="shared"))))
    with pytest.raises(PlanError, match="share a place"):
        write_csv(Problem((Request("a", 4, (0, 2)), Request("b", 4, (1, 3))), in_place=(("b", "a"),)))
    with pytest.raises(PlanError, match="the id 'a.nb'"):
        write_csv(Problem((Request("a\nb", 4, (0, 2)),)))
    with pytest.raises(PlanError, match="the id ''"):
        write_csv(Problem((Request("", 4, (0, 2)),)))


@every(
    "text, code, place",
    [
        ("", "no-csv-header", ""),
        ("\n\n", "no-csv-header", ""),
        ('{"buffers": [{"id": "a"}]}', "no-csv-header", ""),
        ('\n [\n{"id": 3}]', "no-csv-header", ""),
        ("id,lower,upper\n", "missing-column", "1:10"),
        ("id,lower,upper,sise\n", "missing-column", "1:16"),
        ("id,lower,upper,size,id\n", "duplicate-column", "1:21"),
        ("id,lower,upper,size,end\na,0,3,4,9\n", "two-ends", "1:21"),
        (H + "a,1,2,3\n", "bad-csv-row", "2:8"),
        (H + "a,1,2,3,,,,7\n", "bad-csv-row", "2:12"),
        (H + "\n \na,1,2,3\n", "bad-csv-row", "4:8"),
        (H + "\n\na,1,x,3,,,\n", "bad-csv-number", "4:5"),
        (H + '"a,1,2,3,,,\n', "bad-csv-quotes", "2:1"),
        (H + 'a,1,2,"3"4,,,\n', "bad-csv-quotes", "2:7"),
        (H + 'a,1,2,3,,,"4\n"\n', "bad-csv-quotes", "2:11"),
        (H + "a,1,2,3,,,\rb,2,3,4,,,\n", "lone-return", "2:10"),
        (EXAMPLE.replace("\n", "\r"), "lone-return", "1:19"),
        (H + ",1,2,3,,,\n", "nameless-buffer", "2:1"),
        (H + ' "" ,1,2,3,,,\n', "nameless-buffer", "2:2"),
        (H + "a,1,x,3,,,\n", "bad-csv-number", "2:5"),
        (H + "a,1, 2.5,3,,,\n", "bad-csv-number", "2:6"),
        (H + "a,1,,3,,,\n", "bad-csv-number", "2:5"),
        (H + "a,1,2,4*N,,,\n", "bad-csv-number", "2:7"),
        (H + "a,1,2,1_0,,,\n", "bad-csv-number", "2:7"),
        (H + "a,1,2," + "9" * 5000 + ",,,\n", "bad-csv-number", "2:7"),
        (H + "a,1,2,3,3,,\n", "bad-alignment", "2:9"),
        (H + "a,1,2,3,0,,\n", "bad-alignment", "2:9"),
        (H + "a,1,2,3,4,,6\n", "bad-fixed", "2:12"),
        (H + "a,2,2,3,4,,\n", "empty-lifetime", "2:5"),
        (H + "a,1,2,-3,4,,\n", "negative-size", "2:7"),
        (H + "a,1,2,3,4,1-2,\n", "no-lifetime", "2:11"),
        (H + "a,1,2,3,4,1-2-3,\n", "bad-gap", "2:11"),
        (H + "a,1,2,3,4,A-B,\n", "bad-gap", "2:11"),
        (H + "a,1,2,3,4,2-2,\n", "bad-gap", "2:11"),
        (H + "a,0,10,3,4,2-4 8-20,\n", "bad-gap", "2:12"),
        (H + "a,5,10,3,4,0-7,\n", "bad-gap", "2:12"),
        ("id,begin,end,size,gaps\na,5,10,3,9-11\n", "bad-gap", "2:10"),
        (H + "a,1,5,3,4,2-3@1:2,\n", "partial-gap", "2:11"),
        (H + "a,1,2,3,,,\nb,1,2,3,,,\na,1,2,3,,,\n", "duplicate-id", "4:1"),
        ("id,lower,upper,size_expr\na,1,2,3*N+1.5\n", "bad-size-text", "2:7"),
        ("id,lower,upper,size_expr\na,1,2,__import__('os')\n", "bad-size-text", "2:7"),
        ("id,lower,upper,size_expr,size@2\na,1,2,3*N,6\nb,1,2,3*N,7\n", "wrong-size-value", "3:11"),
    ],
)
def test_malformed_input_is_answered_with_its_place(text, code, place):
    told = refused(text)
    assert told.startswith(f"error[{code}]: ")
    assert f"<stream>:{place}" in told if place else "<stream>" in told


def test_blank_lines_are_no_buffers_and_stay_where_they_were():
    problem = read("\nid,lower,upper,size\n\na,0,3,4\n\n\nb,2,5,8\n\n")
    assert [request.id for request in problem.requests] == ["a", "b"]
    plan = Plan.of(problem, {"a": ("global", 0), "b": ("global", 4)})
    assert write_csv(problem, plan) == "\nid,lower,upper,size,offset\n\na,0,3,4,0\n\n\nb,2,5,8,4\n\n"


def test_fixed_offsets_that_clash_are_located():
    problem = read(H + "a,0,3,4,,,0\n\nb,2,5,8,,,2\n")
    with pytest.raises(PlanError) as caught:
        solve(problem)
    assert "<stream>:4:11" in str(caught.value)
    assert "<stream>:2:11" in str(caught.value)


def test_a_long_size_is_shown_in_part():
    told = refused("id,lower,upper,size_expr\na,1,2," + "9" * 5000 + "*N\n")
    assert f"`{'9' * 60}...` is not a size" in told


def test_a_file_is_called_by_its_name(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(EXAMPLE.encode() + b"b6,0,\xff,4\n")
    with pytest.raises(PlanError, match=r"bad\.csv.*line 7 holds the byte 0xff"):
        read_csv(path)
    path.write_text(EXAMPLE + "b6,0,x,4\n")
    with pytest.raises(PlanError, match=r"bad\.csv:7:6"):
        read_csv(path)


SYMBOLIC = "id,lower,upper,size_expr\na,0,2,16*N\n"


def test_what_is_told_of_names_must_be_about_names_that_sizes_have():
    assert "facts tell of `M`, and no size has such a name" in refused(SYMBOLIC, facts="M<=3")
    assert "a value is given to `n`" in refused(SYMBOLIC, bind={"n": 3})
    assert "`N` cannot be 6" in refused(SYMBOLIC, facts="N%4==0", bind={"N": 6})
    assert "`N` cannot be 0" in refused(SYMBOLIC, bind={"N": 0})


def test_an_offset_that_a_memory_forbids_is_located():
    text = refused("id,lower,upper,size,offset\na,0,3,10,\nb,0,3,10,4\n", pools=[Pool("global", align=8)])
    assert "error[bad-fixed]: request `b` is fixed at offset 4" in text
    assert "<stream>:3:10" in text


def test_lines_of_other_lengths_are_told_with_all_that_is_wrong() -> None:
    text = "id,lower,upper,size\na,0,2,x\nb,1\n\nc,3,1,8\nd,0,1,4,5\n"
    with pytest.raises(PlanError) as caught:
        read_csv(io.StringIO(text))
    told = [(message.code, message.span.line) for message in caught.value.messages if message.span is not None]
    assert told == [("bad-csv-number", 2), ("bad-csv-row", 3), ("empty-lifetime", 5), ("bad-csv-row", 6)]


def test_an_open_file_of_other_bytes_than_utf_8_is_refused() -> None:
    source = io.TextIOWrapper(io.BytesIO(b"id,lower,upper,size\nb\xff,0,1,4\n"), "utf-8")
    with pytest.raises(PlanError, match="line 2 holds the byte 0xff in column 2"):
        read_csv(source)


def test_a_number_that_is_too_large_has_its_place() -> None:
    assert "<stream>:3:5" in refused(f"id,lower,upper,size\na,0,2,4\nb,0,{2**200},4\n")
    assert "<stream>:2:7" in refused(f"id,lower,upper,size\na,0,2,{2**1000}\n")


def test_a_binary_file_is_not_read_as_text() -> None:
    with pytest.raises(PlanError, match="`source` of `read_csv` takes a path, or an open text file"):
        read_csv(io.BytesIO(EXAMPLE.encode()))  # type: ignore[arg-type]


def test_a_size_that_is_negative_at_a_value_counts_as_zero_there_and_is_refused_if_it_always_is():
    table = "id,lower,upper,size_expr\na,0,2,N-3\nb,1,3,4*N\n"
    for n, size in ((2, 0), (5, 2)):
        bound = read(table, bind={"N": n})
        assert [r.size for r in bound.requests] == [size, 4 * n]
        assert solve(bound).total == solve(read(table)).at(N=n).total
    for values in ({}, {"N": 2}):
        with pytest.raises(PlanError, match="negative-size"):
            read(table.replace("N-3", "-N"), bind=values)
