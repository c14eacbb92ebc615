"""Model files inside packages."""

from __future__ import annotations

import pytest

from dreamgym.errors import MissingDependency
from dreamgym.replay.weights import file_digest, package_file


def test_a_file_is_found_without_importing_its_package():
    assert package_file("numpy", "py.typed", extra="x").is_file()


def test_the_fix_is_named():
    with pytest.raises(MissingDependency, match=r"nopackage is not installed: .*\[static\]"):
        package_file("nopackage", "weights", extra="static")
    with pytest.raises(MissingDependency, match="numpy holds no weights"):
        package_file("numpy", "weights", extra="static")


def test_the_digest_is_of_the_content(tmp_path):
    one, two, three = (tmp_path / name for name in "abc")
    one.write_bytes(b"x")
    two.write_bytes(b"x")
    three.write_bytes(b"y")
    assert file_digest(one) == file_digest(two) != file_digest(three)
