"""What is learnt of an environment from how its tasks open."""

from made_groups import openings

from dreamgym.tasks.customs import kinds_of, labels_of, learn_customs
from dreamgym.types import Observation, Opening, Split, Task

CUSTOMS = learn_customs(list(openings(20).values()), heard=["> you take the cup", "west: shed"])


def test_lines_have_kinds_and_labels():
    state = "at drawer 1 (open): pencil 1; cup\ncup; spoon\nwest: hall\ncarrying: map\n> you see"
    assert kinds_of(state) == ("labelled", "plain", "labelled", "carrying")
    assert kinds_of("hall\ncup\nnorth: a\nsouth: b") == ("plain", "labelled")
    assert labels_of(state) == {"at drawer", "west", "carrying"}


def test_real_tasks_keep_their_own_customs():
    for one in openings(20).values():
        assert CUSTOMS.broken_layout(one.observation.text) == ""
        assert CUSTOMS.new_words(one.task.goal) == ()


def test_what_is_laid_out_otherwise_is_noticed():
    assert "labelled, plain" in CUSTOMS.broken_layout("box: empty\nhall")
    assert "'up: ...'" in CUSTOMS.broken_layout("hall\nbox: empty\nup: attic\ncarrying: map")
    assert CUSTOMS.broken_layout("attic\nbox: empty\neast: shed\ncarrying: map") == ""
    assert "none" in CUSTOMS.broken_layout("")
    assert CUSTOMS.broken_layout("hall\nup: attic\neast: cave\ncarrying: map", new_labels=0.4) == ""


def test_words_are_known_from_goals_states_and_whatever_was_heard():
    assert CUSTOMS.new_words("bring the moon to the shed, you!") == ("moon",)


def test_how_much_of_the_goal_is_in_sight():
    assert CUSTOMS.in_sight == 1  # the room that the cup goes to
    assert not CUSTOMS.one_goal
    task = Task("t", "t", "0", Split.TRAIN, "find the coin")
    same = [Opening(task, Observation(text)) for text in ("hall", "attic\ncoin")]
    assert learn_customs(same).one_goal
    assert learn_customs(same).in_sight == 0
