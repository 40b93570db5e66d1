"""The first two questions of the screen Protect: how strong, how long; three candidates run, and the best is named with its reason."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.algorithms.budget import AUTO
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.registry import promise_of
from anonflow.dashboards.components.html import (
    button,
    card,
    facts,
    html,
    in_lines,
    items,
    labelled,
    say,
    soft,
)
from anonflow.dashboards.protect.settings import Protection
from anonflow.dashboards.session.draft_spec import DraftSpec, MethodSpec
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.session.validation import judged
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun, over_budget
from anonflow.engine.first_questions import BESIDE, FIND, HOW_LONG, HOW_STRONG, STRENGTHS, TIMES
from anonflow.errors import AnonflowError


class TwoQuestions(pn.viewable.Viewer):
    """The two questions, and their answer.

    Parameters
    ----------
    protection : Protection
        The form of the draft; its workspace runs the candidates.
    """

    protection = param.ClassSelector(class_=Protection, constant=True)
    workspace = param.ClassSelector(class_=Workspace, constant=True)
    candidates = param.Parameter((), doc="Finished runs of the last start, in the order in which they ended.")
    problem = param.String(default="", doc="Why nothing runs.")

    def __init__(self, protection: Protection, **params: Any) -> None:
        super().__init__(protection=protection, workspace=protection.workspace, **params)
        self._after: int | None = None
        self.strength = pn.widgets.RadioBoxGroup(label=HOW_STRONG, options=STRENGTHS, value=None, width=330)
        self.time = pn.widgets.RadioBoxGroup(
            label=HOW_LONG, options=TIMES, value=min(TIMES.values()), width=330
        )
        self.without_answer = html()
        self.start = button(FIND, self.find, css="af-find", color="primary")
        self.cancel = button(
            "Cancel", self.workspace.starts.cancel, css="af-stop", color="danger", width=120, visible=False
        )
        self.answer = html("", "af-best")
        pn.bind(self._set_k, self.strength, watch=True)
        self._show_k()
        self._show()

    def _set_k(self, k: int | None) -> None:
        if k is not None and k != self.protection.k:  # else it follows the draft, which may compare several k
            self.protection.param.update(k=k, more=[])

    @param.depends("protection.k", watch=True)
    def _show_k(self) -> None:
        k = self.protection.k
        self.strength.value = k if k in STRENGTHS.values() else None
        say(
            self.without_answer,
            ""
            if self.strength.value
            else soft(f"Without an answer, each person hides among {k:,}: k as it is chosen now."),
        )

    def find(self) -> None:
        """Run the candidates; the draft becomes that of the first, the method that is chosen for the time."""
        workspace, table = self.workspace, self.workspace.data.table
        self.problem = ""
        if workspace.starts.running or table is None:
            self.problem = "; ".join(workspace.data.problems)
            return
        folder, draft = workspace.draft.folder, workspace.draft.spec
        specs = self.specs(draft)
        ready = []
        for spec in specs:
            judgement = judged(spec, folder, table, workspace.data.source)
            if judgement.flow is not None:
                ready += [(judgement.flow, run, spec.single(run)) for run in judgement.runs]
            elif not ready and spec is specs[-1]:
                self.problem = "; ".join(judgement.problems)
        if ready:
            self._after = max((run.id for run in workspace.runs.finished), default=0)
            self.candidates = ()
            try:
                workspace.draft.put(specs[0])
                workspace.starts.start_flows(ready)
            except AnonflowError as error:
                self.problem = on_screen(error.message)

    def specs(self, draft: DraftSpec) -> tuple[DraftSpec, ...]:
        """Return the flows of the candidates, with all other settings of a draft."""
        seconds, most = float(self.time.value), self.workspace.limits.seconds
        seconds = seconds if most is None else min(seconds, most)
        rest = draft.method.model_dump(include={"loss", "boundaries"})
        auto = MethodSpec(algorithm=AUTO, guarantee="k-regular", budget=seconds, k=self.protection.k, **rest)
        alone = draft.model_copy(update={"matrix": {}, "target": None}).with_partition()
        beside = tuple(
            alone.with_steps(
                anonymize=MethodSpec(algorithm=name, k=self.protection.k, **rest)
            ).with_partition(size=AUTO, budget=seconds)
            for name in BESIDE
        )
        return (alone.with_steps(anonymize=auto), *beside)

    @property
    def best(self) -> FinishedRun | None:
        """The candidate of least loss whose checks hold, of equal ones that with classes, which promise more; None while there is none."""
        passed = [run for run in self.candidates if run.ok and "gcp" in run.result.measures]
        return min(
            passed,
            key=lambda run: (
                float(run.result.measures["gcp"]),
                not promises_classes(run.result.guarantee),
                run.id,
            ),
            default=None,
        )

    @param.depends("workspace.runs.finished", "workspace.starts.running", watch=True)
    def _ended(self) -> None:
        if self._after is None:
            return
        self.candidates = tuple(run for run in self.workspace.runs.finished if run.id > self._after)
        if not self.workspace.starts.running:
            self._after = None
            if self.best is not None:
                self.workspace.runs.choose(self.best.id)
        self._show()

    @param.depends("workspace.data.problems", "problem", watch=True)
    def _show(self) -> None:
        running = self._after is not None
        self.start.disabled = self.workspace.starts.running or bool(self.workspace.data.problems)
        self.start.label = "Running the candidates…" if running else FIND
        self.cancel.visible = running
        answer = Markup("<p role='alert'>{}</p>").format(self.problem) if self.problem else Markup("")
        if self.workspace.data.problems and not self.problem:
            answer = soft(f"These questions wait: {'; '.join(self.workspace.data.problems[:3])}.", "status")
        best = self.best
        if best is not None and not running:
            answer += Markup("<p><b>Best for you: {}</b>, because {}</p>").format(
                best.result.algorithm, self.reason(best)
            )
        if self.candidates:
            rows = [
                (
                    Markup("<b>{}</b>" if run is best else "{}").format(run.result.algorithm),
                    _gcp_of(run),
                    promise_of(run.result.guarantee, run.result.k) or run.result.guarantee,
                    f"{run.result.seconds:.1f}",
                )
                for run in self.candidates
            ]
            answer += facts(("candidate", "loss (GCP) ↓", "what it promises", "seconds ↓"), rows, (1, 3))
            batch = self.workspace.starts.batch
            if batch is not None and batch.compiled:
                answer += soft(batch.compiled)
            if late := over_budget(self.candidates):
                answer += Markup("<div class='af-warn'>{}</div>").format(items(late))
        self.answer.object = str(answer)

    def reason(self, best: FinishedRun) -> str:
        """Return why a candidate is the best, in words."""
        others = [run for run in self.candidates if run.id != best.id]
        listed = ", ".join(f"{run.result.algorithm} {_gcp_of(run)}" for run in others)
        anonymization = best.result.anonymization
        hidden = (
            f"Each person hides among {best.result.k}, and all its checks hold."
            if anonymization is None or anonymization.table.unit is None
            else f"Each record hides among {best.result.k}, and all its checks hold; people with several records are easier to find, "
            "and the release card says how much."
        )
        return (
            f"{'no other loses less' if _gcp_of(best) in map(_gcp_of, others) else 'it loses least'}: {_gcp_of(best)}"
            + (f" ({listed})" if listed else "")
            + f". {hidden} The next screens show it; Publish draws its release."
        )

    def __panel__(self) -> pn.viewable.Viewable:
        return card(
            "Two questions",
            in_lines(labelled(self.strength, width=350), labelled(self.time, width=350)),
            self.without_answer,
            in_lines(self.start, self.cancel),
            self.answer,
            lead="Three candidates run: the method that loses least in the time, and two that publish classes of equal rows. The one of least loss is chosen.",
        )


def _gcp_of(run: FinishedRun) -> str:
    loss = run.result.measures.get("gcp")
    return "no result" if run.result.problem is not None or loss is None else f"{float(loss):.3f}"
