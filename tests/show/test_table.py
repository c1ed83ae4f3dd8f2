"""Tables of text."""

from tirlite.show import table


def test_numbers_stand_to_the_right_and_words_to_the_left():
    assert table(("name", "bytes"), [("a", 5), ("long", 1000)]) == (
        "name  bytes\n----  -----\na         5\nlong   1000"
    )


def test_a_column_that_is_not_all_numbers_stands_to_the_left():
    assert table(("x",), [("n",), (4,)]) == "x\n-\nn\n4"


def test_no_rows():
    assert table(("a", "b"), []) == "a  b\n-  -"


def test_beyond_the_limit_the_middle_is_left_out():
    lines = table(("i",), [(i,) for i in range(10)], limit=4).splitlines()
    assert lines == ["i", "-", "0", "1", "... 6 more ...", "8", "9"]
