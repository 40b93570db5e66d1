"""What works in the background says what it is at, and ends at its next step once it is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import param
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.explore.model import ExploreModel
from anonflow.dashboards.publish.screen import PublishScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.screen_work import Background
from tests.dashboards.conftest import Hand


class Model(ScreenModel):
    answer = param.Integer(default=0)


@pytest.fixture
def workspace(hand: Hand) -> Iterator[Workspace]:
    item = Workspace()
    item.opener.open_dataset("census_like", n=90, seed=2)
    item.draft.set_algorithms(["mondrian"])
    item.draft.set_ks([3])
    item.start()
    hand.do_all()
    item.data.confirm(dict.fromkeys(item.draft.spec.columns, ""))
    yield item
    item.close()


def test_steps_are_shown_and_the_last_one_ends_it(workspace: Workspace, hand: Hand) -> None:
    owner, seen = Model(workspace), []
    background = owner.background
    line = AtWork(background)
    assert not line.line.visible

    def work() -> int:
        for step in (1, 2):
            background.tell(f"step <{step}>", step, 4)
            seen.append((line.line.visible, line.words.object))
        return 7

    owner.compute(work, lambda answer: {"answer": answer}, words="at work")
    assert line.line.visible
    assert "Waiting for a free processor" in line.words.object
    hand.do_all()
    assert [visible for visible, _ in seen] == [True, True]
    assert "Step &lt;2&gt;" in seen[1][1]
    assert 'value="0.5' in seen[1][1]
    assert (owner.busy, owner.answer, background.doing, line.line.visible) == (False, 7, "", False)


def test_what_is_cancelled_ends_at_its_next_step(workspace: Workspace, hand: Hand) -> None:
    owner, came = Model(workspace), []
    background = owner.background

    def work() -> int:
        background.tell("first")
        background.cancel()
        assert not owner.busy
        background.tell("second")
        came.append("beyond")
        return 7

    owner.compute(work, lambda answer: {"answer": answer}, words="at work")
    hand.do_all()
    assert (came, owner.answer, owner.problem, owner.busy, background.busy) == ([], 0, "", False, False)


def test_what_is_cancelled_before_its_turn_is_not_begun(workspace: Workspace, hand: Hand) -> None:
    owner = Model(workspace)
    background = owner.background
    owner.compute(lambda: pytest.fail("begun"), lambda answer: {})
    background.cancel()
    hand.do_all()
    assert (owner.busy, owner.problem) == (False, "")
    background.cancel()  # nothing is at work: nothing happens


def cancelled_at(background: Background, step: int, shown: list[str]) -> Callable[..., None]:
    """Return what cancels a work at one of its steps."""

    def heard(event: param.parameterized.Event) -> None:
        shown.append(event.new)
        if event.new and len(shown) == step:
            background.cancel()

    return heard


@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_a_draw_that_is_cancelled_leaves_nothing(workspace: Workspace, hand: Hand, step: int) -> None:
    screen = PublishScreen(workspace=workspace)
    shown: list[str] = []
    model = screen.model
    model.background.param.watch(cancelled_at(model.background, step, shown), "doing")
    screen.draw.clicks += 1
    hand.do_all()
    assert (model.publication, model.busy, model.problem, model.drawn) == (None, False, "", [])
    assert not screen.draw.disabled
    assert workspace.memory.kept == (0, 0)
    assert len(set(shown)) >= step
    model.draw()
    hand.do_all()
    assert model.publication.ok
    assert workspace.memory.kept == (0, 1)


def test_attackers_are_counted_and_can_be_stopped(workspace: Workspace, hand: Hand) -> None:
    model = ExploreModel(workspace)
    shown: list[str] = []
    model.background.param.watch(cancelled_at(model.background, 3, shown), "doing")
    model.attack()
    hand.do_all()
    assert (model.attacks, model.busy) == (None, False)
    assert shown[2].startswith("attacker 1 of ")
    model.attack()
    hand.do_all()
    assert model.attacks is not None
