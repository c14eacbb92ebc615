"""The report: groups over seeds, nothing fetched, nothing made up, and as a browser shows it."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dreamgym import codec
from dreamgym.errors import RecordError, RunDirError
from dreamgym.models.tiny import PRESETS
from dreamgym.report import read_run, report_page
from dreamgym.report.groups import NAMES, group_runs
from dreamgym.rollout.summary import wilson
from dreamgym.types import Source, Split, Transition
from made_runs import make_audit, make_episode, make_evaluation, make_fit, make_run, make_trial

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two arms of three seeds, and one run of each other kind."""
    root = tmp_path_factory.mktemp("runs")
    gate = make_audit(root / "gate")
    found = []
    for seed in range(3):
        found.append(make_trial(root / f"dream-{seed}", seed=seed, world="d", gate=str(gate)))
        found.append(make_trial(root / f"real-{seed}", seed=seed, top=0.9))
    found += [make_evaluation(root / "<judged>"), make_fit(root / "fitted")]
    found += [make_fit(root / kind, kind=kind) for kind in ("sft", "dpo")]
    first = "hall\n<rug>; " + "; ".join(f"a cupboard with {n} drawers" for n in range(9))
    row = {"id": "t", "source": "dream", "state": "active", "value": 0.2, "goal": "a <goal>",
           "first_state": first, "parents": ["e#train-7"]}  # fmt: skip
    (found[0] / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    return [read_run(path) for path in found]


class Balance(HTMLParser):
    """Checks that every tag that is opened is closed."""

    empty = frozenset({"meta", "line", "circle", "path", "br"})

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.empty or (
            tag == "circle" and not self.get_starttag_text().endswith("/>")
        ):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_tag_is_closed_and_nothing_is_fetched(runs):
    page = report_page(runs)
    reader = Balance()
    reader.feed(page)
    assert reader.open == []
    assert not re.search(r"(?i)(src|href)=|url\(|@import|<script|https?:", page)
    assert not re.search(r"\bnan\b|\bNone\b", re.sub(r"<pre>.*?</pre>", "", page, flags=re.S))


def test_names_cannot_write_the_page(runs):
    page = report_page(runs, title="a <h9>")
    for name in ("<judged>", "<coin>", "<goal>", "hall · <rug>", "<h9>"):
        assert html.escape(name) in page
        assert name not in page


def test_runs_that_differ_by_seed_and_places_are_one_group(runs):
    groups = group_runs(runs)
    assert [(one.label, len(one.runs)) for one in groups[:2]] == [
        ("grpo in a dream", 3), ("grpo for real", 3),
    ]  # fmt: skip
    first = groups[0]
    looks = [run.metrics[0]["real/success"] for run in first.runs]
    curve = first.curve("real/success", share=True)
    assert [point.x for point in curve] == [0, 10, 20, 30]
    assert curve[0].mean == pytest.approx(sum(looks) / 3)
    assert curve[0].low < min(looks)


def test_other_settings_are_another_group_that_says_so(tmp_path):
    made = [make_trial(tmp_path / name, **{"rl.kl": kl}) for name, kl in (("a", 0.1), ("b", 0.5))]
    assert [one.label for one in group_runs([read_run(path) for path in made])] == [
        "grpo for real (kl 0.1)", "grpo for real (kl 0.5)",
    ]  # fmt: skip


def labels_of(paths):
    return [(one.label, len(one.runs)) for one in group_runs([read_run(path) for path in paths])]


def test_another_size_or_world_is_another_group_and_no_seed(tmp_path):
    sizes = [make_fit(tmp_path / f"{size}-{seed}", kind="sft", seed=seed, **{"policy.model": size})
             for seed in range(2) for size in ("1m", "3m")]  # fmt: skip
    assert labels_of(sizes) == [("sft (model 1m)", 2), ("sft (model 3m)", 2)]
    start = make_fit(tmp_path / "on", kind="sft", **{"policy.model": "runs/clone"})
    assert labels_of([sizes[0], start]) == [("sft (model 1m)", 1), ("sft (model clone)", 1)]
    worlds = [make_trial(tmp_path / name, seed=seed, world=name)
              for seed, name in enumerate(("llm", "smollm2"))]  # fmt: skip
    assert labels_of(worlds) == [("grpo in a dream (world llm)", 1),
                                 ("grpo in a dream (world smollm2)", 1)]  # fmt: skip
    assert PRESETS.keys() < NAMES


def test_one_seed_in_two_dreams_is_two_groups_that_name_them(tmp_path):
    made = [
        make_trial(tmp_path / f"{dream}-{seed}", seed=seed, world=f"runs/{dream}-{seed}/fit")
        for seed in range(2)
        for dream in ("poor", "good")
    ]
    assert labels_of(made[::2]) == [("grpo in a dream", 2)], "a dream for each seed"
    assert labels_of(made) == [("grpo in a dream (world poor-0/fit)", 2),
                               ("grpo in a dream (world good-0/fit)", 2)]  # fmt: skip
    assert labels_of(made[:3]) == [("grpo in a dream (world poor-0/fit)", 2),
                                   ("grpo in a dream (world good-0/fit)", 1)]  # fmt: skip


def test_a_run_that_was_made_twice_is_no_second_seed(tmp_path):
    made = [make_trial(tmp_path / name / "run") for name in ("first", "again")]
    assert labels_of(made) == [("grpo for real (first/run)", 1), ("grpo for real (again/run)", 1)]
    both = group_runs([read_run(path) for path in made], dict.fromkeys(made, "named"))
    assert [len(one.runs) for one in both] == [2], "who gives names answers for them"


def test_runs_of_one_given_name_are_one_group_whatever_their_settings(tmp_path):
    made = [make_trial(tmp_path / name, **{"rl.kl": kl}) for name, kl in (("a", 0.1), ("b", 0.5))]
    runs = [read_run(path) for path in made]
    (both,) = group_runs(runs, dict.fromkeys(made, "careful"))
    assert (both.label, both.runs) == ("careful", tuple(runs))
    named = group_runs(runs, {made[1]: "careful"})
    assert [one.label for one in named] == ["grpo for real", "careful"]


def test_one_seed_has_the_interval_of_its_look_and_a_longer_run_goes_on_alone(tmp_path):
    short, long = (
        read_run(make_trial(tmp_path / f"{steps}", seed=steps, steps=30, finished=steps > 10))
        for steps in (10, 30)
    )
    (alone,) = group_runs([long])
    assert alone.curve("real/success")[0].low is not None
    assert alone.curve("reward/success")[0].low is None
    bought = alone.curve("real/success", across="real/steps_online")
    assert [point.x for point in bought] == [0, 9000, 18000, 27000]
    cut = short.metrics[:15]
    both = group_runs([long, type(short)(short.path, short.kind, short.about, short.settings, cut,
                                         None)])[0]  # fmt: skip
    assert [point.x for point in both.curve("real/success")] == [0, 10, 20, 30]


def test_the_interval_of_a_look_is_of_the_episodes_that_counted(tmp_path):
    run = read_run(make_trial(tmp_path / "run"))
    figures = {"real/success": 0.75, "real/success_greedy": 0.75, "real/episodes_greedy": 4.0}
    asked = figures | {"step": 0}
    told = asked | {"real/episodes": 4.0}
    for row, name, episodes in (
        (asked, "real/success", 50), (told, "real/success", 4), (asked, "real/success_greedy", 4),
    ):  # fmt: skip
        (group,) = group_runs([replace(run, metrics=(row,))])
        (point,) = group.curve(name)
        rate = wilson(round(0.75 * episodes), episodes)
        assert (point.low, point.high) == (rate.low, rate.high)


def test_every_kind_of_run_has_its_part(runs):
    page = report_page(runs)
    for words in (
        "Success over training", "What it reached", "May one train", "the gate is <b>open</b>",
        "Curriculum", "Tasks of the curriculum", "Judged for real", "How learning went",
        "Learning from demonstrations", "won and lost", "Fitting the experience model",
        "Episodes to read", "Settings and versions",
        "Dream against reality, while practising",
    ):  # fmt: skip
        assert words in page, words
    assert "27,000" in page
    assert "21,724" in page
    assert "dream, like train-7" in page, "where a synthetic task comes from"


def test_a_page_about_many_runs_stays_readable(tmp_path):
    """Of a group's seeds one pool is shown, unfolded once; each environment has its own curves."""
    made = []
    for env in ("e/one", "e/two"):
        for seed in range(2):
            path = make_trial(tmp_path / f"{env[2:]}-{seed}", seed=seed, world="d", gate="off")
            result = json.loads((path / "result.json").read_text()) | {"env": env}
            (path / "result.json").write_text(json.dumps(result))
            (path / "tasks.jsonl").write_text(
                json.dumps({"id": f"t{seed}", "source": "real"}) + "\n"
            )
            made.append(read_run(path))
    page = report_page(made)
    assert page.count("1 tasks, 0 of them synthetic") == 2
    assert "<summary>grpo in a dream, e/two: 1 tasks" in page
    assert "<h3>grpo in a dream, e/one: 1 tasks" in page
    assert "Success over training in e/one" in page and "Success over training in e/two" in page
    assert "Trained without a gate: grpo in a dream, e/one, grpo in a dream, e/two." in page


def test_a_run_that_is_not_finished_is_told_and_not_counted(tmp_path):
    run = read_run(make_trial(tmp_path / "going", finished=False))
    page = report_page([run])
    assert "Not finished, so with no figures here: going" in page
    assert "class='tile" not in page


def test_no_interval_of_success_goes_beyond_what_a_share_can_be(tmp_path):
    made = []
    for seed, reached in enumerate((0.9, 1.0)):
        path = make_trial(tmp_path / f"{seed}", seed=seed)
        result = json.loads((path / "result.json").read_text())
        result |= {"before": {"real/success": seed / 10}, "after": {"real/success": reached}}
        (path / "result.json").write_text(json.dumps(result))
        made.append(read_run(path))
    page = report_page(made)
    assert "<b>0.95</b> <span class='ci'>0.31 to 1.00</span>" in page
    assert "<b>0.05</b> <span class='ci'>0.00 to 0.69</span>" in page


def test_references_of_a_dreamed_episode_are_shown(runs):
    step = Transition("a#1", "a", 1, "e", "t", "g", Split.TRAIN, Source.REAL, "s", "open box",
                      "a box with <dust>", 0.0, False, False, False)  # fmt: skip
    page = report_page(runs, look_up=lambda run, wanted: {"a#1": step})
    assert "nothing was ever in it" in page
    assert "a box with &lt;dust&gt;" in page
    assert "2 references" in report_page(runs)


def test_episodes_are_of_the_first_seed_that_has_any_of_rounds_too_and_a_torn_line_is_no_episode(
    tmp_path,
):
    runs = [make_trial(tmp_path / f"seed-{seed}", seed=seed, world="d") for seed in range(3)]
    assert "Episodes to read" not in report_page([read_run(path) for path in runs])
    place = runs[1] / "round-2/episodes/step-00001.jsonl"
    place.parent.mkdir(parents=True)
    codec.write_lines(place, [make_episode("first", won=False), make_episode("last", won=True)])
    whole = place.read_text()
    assert report_page([read_run(path) for path in runs]).count("<article>") == 2
    place.write_text(whole[:-20])
    torn = report_page([read_run(path) for path in runs])
    assert torn.count("<article>") == 1
    assert "seed-1 ·" in torn
    place.write_text("{}\n" + whole)
    with pytest.raises(RecordError, match=r"step-00001\.jsonl:1"):
        report_page([read_run(path) for path in runs])


def test_a_folder_that_is_no_run_is_told(tmp_path):
    with pytest.raises(RunDirError, match="it has no run.json"):
        read_run(tmp_path)


def test_a_shut_gate_is_told_with_its_reasons(tmp_path):
    page = report_page([read_run(make_audit(tmp_path / "audit", opened=False))])
    assert "the gate is <b>shut</b>" in page
    assert "precision &lt;is&gt; too low" in page


def test_a_run_of_any_command_can_be_shown(tmp_path):
    page = report_page([read_run(make_run(tmp_path / "c", command="collect", settings={}))])
    assert "Settings and versions" in page


MEASURE = """
<script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), inside = frame.contentDocument;
  const root = inside.documentElement;
  const boxes = [...inside.querySelectorAll("svg.plot")].map((one) => one.getBoundingClientRect());
  const ink = getComputedStyle.call(frame.contentWindow, inside.body).color;
  document.title = JSON.stringify({
    wide: root.scrollWidth, room: root.clientWidth, plots: boxes.length, ink,
    small: boxes.filter((box) => box.width < 200 || box.height < 100).length,
    tasks: [...inside.querySelectorAll(".wide")]
      .filter((one) => one.textContent.includes("cupboard") && one.scrollWidth > one.clientWidth)
      .length,
    headings: inside.querySelectorAll("h2").length,
  });
});
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize(("width", "dark"), [(390, False), (1200, True)])
def test_a_browser_shows_it_without_scrolling_sideways(runs, tmp_path, width, dark):
    page = html.escape(report_page(runs), quote=True)
    frame = f'<iframe style="width:{width}px;height:900px" srcdoc="{page}"></iframe>'
    (tmp_path / "frame.html").write_text(f"<!doctype html><body>{frame}{MEASURE}")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000",
         f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--window-size=1400,1000",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         (tmp_path / "frame.html").as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    seen = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", done.stdout)[1]))
    assert seen["wide"] <= seen["room"] <= width
    assert seen["plots"] > 10
    assert seen["small"] == 0
    assert width < 800 or seen["tasks"] == 0, "a first state is no reason to scroll"
    assert seen["headings"] >= 10
    lightness = sum(map(int, re.findall(r"\d+", seen["ink"])[:3]))
    assert (lightness > 380) == dark


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_episodes_that_are_folded_on_a_screen_are_printed(tmp_path):
    judged = make_evaluation(tmp_path / "judged")
    episodes = [make_episode(str(n), won=n > 0) for n in range(2)]
    long = [replace(one, steps=one.steps * 30) for one in episodes]
    codec.write_lines(judged / "episodes.jsonl", long)
    page = report_page([read_run(judged)])
    unfolds = "article details::details-content{content-visibility:visible;block-size:auto}"
    assert unfolds in page
    assert pages_of(page, tmp_path / "whole") > 2 * pages_of(
        page.replace(unfolds, ""), tmp_path / "folded"
    )


def pages_of(page, folder):
    """Print a page, and count what comes out."""
    folder.mkdir()
    (folder / "page.html").write_text(page)
    subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
         f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={folder / 'page.pdf'}",
         (folder / "page.html").as_uri()],
        capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    return len(re.findall(rb"/Type /Page\b", (folder / "page.pdf").read_bytes()))


def test_a_page_without_runs_says_so():
    page = report_page([], title="Bench", extra=("<section>bars</section>",))
    assert "from the record alone" in page
    assert "0 run" not in page
    assert "Settings and versions" not in page
