"""Settings: the types that a dataclass declares are those that an experiment must have."""

from dataclasses import dataclass

import pytest

from ghost.errors import GhostError
from ghost.runs.settings import read_settings


@dataclass(frozen=True)
class Settings:
    steps: int = 1
    env_seed: int | None = None
    widths: tuple[int, ...] = ()


@pytest.mark.parametrize("given", [{}, {"env_seed": None}, {"env_seed": 3}, {"widths": [1, 2]}])
def test_a_setting_of_its_type_is_taken(given):
    (settings,) = read_settings("tiny", given, Settings)
    assert settings == Settings(**{key: tuple(v) if isinstance(v, list) else v for key, v in given.items()})


@pytest.mark.parametrize("given", [{"env_seed": "3"}, {"steps": None}, {"widths": [1.5]}, {"steps": True}])
def test_a_setting_of_another_type_is_one_line(given):
    with pytest.raises(GhostError, match=r"^tiny: \w+.* must be"):
        read_settings("tiny", given, Settings)
