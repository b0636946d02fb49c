"""Stacks as people read them."""

from orchestra.history.describe import STACK_LINES, stack_lines

CHAINED = """Traceback (most recent call last):
  File "/project/agents/one.py", line 6, in deep
    return values["b"]
           ~~~~~~^^^^^
KeyError: 'b'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  … 2 frames of orchestra
  File "/project/configs/../agents/one.py", line 2, in agent
    return deep()
  File "/elsewhere/two.py", line 8, in deep
    raise ValueError(
    ^^^^^^^^^^^^^^^^^
        "no")
ValueError: no
    File "x", it says
"""


def test_where_it_failed_comes_first_then_who_called_it_then_what_was_before() -> None:
    assert stack_lines(CHAINED, "/project") == [
        "/elsewhere/two.py:8 in deep: raise ValueError(",
        "agents/one.py:2 in agent: return deep()",
        "… 2 frames of orchestra",
        "before that, KeyError: 'b'",
        'agents/one.py:6 in deep: return values["b"]',
    ]


def test_what_is_no_python_traceback_stays_as_it_is() -> None:
    assert stack_lines("panic: oh no\n\n  main.go:12\n") == ["panic: oh no", "  main.go:12"]
    assert stack_lines("") == []


def test_a_long_one_is_cut() -> None:
    long = "".join(f'  File "a.py", line {at}, in f\n' for at in range(50))
    *shown, last = stack_lines(long)
    assert (shown[0], len(shown), last) == ("a.py:49 in f", STACK_LINES, f"… {50 - STACK_LINES} more")
