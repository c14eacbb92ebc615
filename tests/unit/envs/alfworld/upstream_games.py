"""Games as ALFWorld itself plays them, to compare with."""

from dreamgym.envs.alfworld.game_text import NO_GOAL
from dreamgym.envs.alfworld.generate import SIZES
from dreamgym.envs.alfworld.generated import GeneratedGames, Recipe
from dreamgym.types import Split


def start_upstream(data):
    """Open a game the way ALFWorld itself does, with none of our code."""
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
    from textworld import EnvInfos
    from textworld.envs.pddl.pddl import PddlEnv

    infos = EnvInfos(won=True, admissible_commands=True)
    env = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
    env.load(data)
    return env


def game_data(upstream, count, size="small"):
    recipe = Recipe(size=SIZES[size], counts=((Split.TEST, count),))
    source = GeneratedGames("spec", upstream, recipe)
    for task in source.tasks(Split.TEST):
        text = source.read(task)
        grammar = text.grammar.replace(NO_GOAL, text.goal)
        yield {"pddl_domain": text.domain, "grammar": grammar, "pddl_problem": text.problem}
