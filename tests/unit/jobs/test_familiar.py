"""Names that people of other trainers look for."""

from dreamgym.jobs.familiar import NAMES, familiar


def test_figures_are_found_under_both_names():
    told = familiar({"real/success": 0.5, "mine": 1.0})
    assert told == {"real/success": 0.5, "mine": 1.0, "val/success_rate": 0.5}
    assert len(set(NAMES.values())) == len(NAMES)
    assert not set(NAMES) & set(NAMES.values())
