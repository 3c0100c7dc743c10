"""The complexity of the ten tasks, from their BDDL goals."""

from ghost.libero.subphases import nominal_subphases

SIMPLE, COMPLEX = (0, 1, 7), (4, 6, 8)  # the article's


def test_the_ten_tasks():
    assert [len(nominal_subphases(task)) for task in range(10)] == [2, 2, 3, 4, 5, 2, 5, 2, 5, 4]


def test_the_articles_simple_tasks_have_two_and_its_complex_ones_five():
    assert {len(nominal_subphases(task)) for task in SIMPLE} == {2}
    assert {len(nominal_subphases(task)) for task in COMPLEX} == {5}


def test_what_holds_at_the_start_is_no_sub_phase():
    """The goal of the task with two pots names the stove, which is on already; the other task turns it on."""
    assert "operate" not in nominal_subphases(8)
    assert nominal_subphases(2) == ("operate", "carry", "fit")


def test_a_drawer_is_shut_last_though_its_goal_stands_first():
    assert nominal_subphases(3) == ("carry", "fit", "withdraw", "operate")
