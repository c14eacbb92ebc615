"""What is remembered of an episode beyond the turns that are shown."""

from dreamgym.experience.history import Turn, notes_of


def test_notes_keep_what_was_told_before_the_window():
    history = (
        Turn("read a", ("the coin is in the garden",)),
        Turn("look", ("taken",)),
        Turn("eat b", ("you can not eat a b at all",), refused=True),
        Turn("read a", ("the coin is in the garden",)),
        Turn("read c", ("the key is under the mat",)),
        Turn("wait"),
    )
    assert notes_of(history, window=2, most=5) == ("the coin is in the garden",)
    assert notes_of(history, window=6, most=5) == ()
    assert notes_of(history, window=1, most=1) == ("the key is under the mat",)
