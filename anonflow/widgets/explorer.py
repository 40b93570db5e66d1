"""The widgets of the explorer; its state is an :class:`Exploration`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

import ipywidgets as w
import pandas as pd
from markupsafe import Markup

from anonflow.algorithms import REGISTRY, Anonymization
from anonflow.drawing import facts, grid, note, or_dash, plots, share, view
from anonflow.engine.first_questions import FIND, HOW_LONG, HOW_STRONG, STRENGTHS, TIMES
from anonflow.errors import AnonflowError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.table import Table
from anonflow.table.schema import ROLES
from anonflow.widgets.exploration import PARTITION, Exploration, Finished

SIZES = (100, 250, 500, 1_000, 2_500)
"""Partition sizes to choose from, beside the whole table."""

PAUSE = 0.1
"""Seconds between two updates of the progress."""

_WIDE = {"description_width": "6.5rem"}


def explorer(
    table: Table | pd.DataFrame,
    *,
    k: int = 10,
    methods: Iterable[str] = ("greedy", "mondrian"),
    partition_size: int | None = PARTITION,
) -> Explorer:
    """Return a panel to compare methods on a table in a notebook.

    Parameters
    ----------
    table : Table or pandas.DataFrame
        The roles and kinds of a frame are guessed.
    k : int
    methods : iterable of str
        Names of :func:`anonflow.algorithms`.
    partition_size : int, optional
        None is the whole table.

    Returns
    -------
    Explorer
        The last line of a cell shows it. The next cell can read the choices and results: ``explorer.table``, ``.k``,
        ``.methods``, ``.runs``, ``.chosen``.

    Raises
    ------
    ParameterError
        If `table` has another type, or a method or k is unknown.
    SchemaError, DataError
        If a frame cannot be used as a table.
    """
    return Explorer(Exploration(table, k=k, methods=methods, partition_size=partition_size))


class Explorer:
    """A panel of widgets over an :class:`Exploration`; it is for the owner only, because it shows originals.

    Parameters
    ----------
    exploration : Exploration
    """

    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self._busy = threading.RLock()
        self._hushed = False
        self._drawn: tuple[Any, ...] = ()
        self._last_shown = 0.0
        self._bars: dict[str, Any] = {}
        self._make()
        self._refresh()
        exploration.listen(self._changed)

    # ------------------------------------------------------------------------ what the next cell reads

    @property
    def table(self) -> Table | None:
        """The table under the chosen roles, or None if the roles are invalid."""
        return self.exploration.table

    @property
    def k(self) -> int:
        """The number of records among which each record is hidden."""
        return self.exploration.k

    @k.setter
    def k(self, value: int) -> None:
        self.exploration.k = value

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that are run."""
        return self.exploration.methods

    @methods.setter
    def methods(self, names: Iterable[str]) -> None:
        self.exploration.methods = names

    @property
    def partition_size(self) -> int | None:
        """Records in a partition; None is the whole table."""
        return self.exploration.partition_size

    @partition_size.setter
    def partition_size(self, value: int | None) -> None:
        self.exploration.partition_size = value

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each finished run."""
        return self.exploration.runs

    @property
    def chosen(self) -> Anonymization | None:
        """The anonymization of the chosen run."""
        return self.exploration.chosen

    def start(self) -> None:
        """Start the runs, as the button Run does.

        Raises
        ------
        ParameterError
            If the request has problems.
        """
        self.exploration.start()

    def find(self, seconds: float = min(TIMES.values())) -> None:
        """Run the method that loses least in so many seconds and two beside it, as the button below the two questions does.

        Raises
        ------
        ParameterError
            If the roles are invalid, or it is no time.
        """
        self.exploration.find(seconds)

    def cancel(self) -> None:
        """Cancel the runs, as the button Cancel does."""
        self.exploration.cancel()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all runs are over, and the widgets are drawn.

        Raises
        ------
        TimeoutError
            If they are not over after `timeout` seconds.
        """
        self.exploration.wait(timeout)

    def choose(self, number: int) -> None:
        """Choose the run that is shown, by its number.

        Raises
        ------
        ParameterError
            If there is no such run with a result.
        """
        self.exploration.choose(number)

    # ----------------------------------------------------------------------------------- the widgets

    def _make(self) -> None:
        model = self.exploration
        # choices of a widget are pairs of words and a value; none is chosen where k is another
        self.strength = w.RadioButtons(
            options=list(STRENGTHS.items()), value=None, layout=w.Layout(width="auto")
        )
        self.strength.observe(self._strengthened, "value")
        self.time = w.RadioButtons(options=list(TIMES.items()), layout=w.Layout(width="auto"))
        self.best = w.Button(description=FIND, button_style="primary", layout=w.Layout(width="auto"))
        self.best.on_click(lambda _: self._ask(model.find, self.time.value))
        self.roles = {
            name: w.Dropdown(
                options=list(ROLES), value=role, description=name, style=_WIDE, layout=w.Layout(width="auto")
            )
            for name, role in model.roles.items()
        }
        for name, role_of in self.roles.items():
            role_of.observe(lambda change, name=name: self._ask(model.set_role, name, change["new"]), "value")
        self.slider = w.IntSlider(
            value=model.k,
            min=2,
            max=max(model.k, min(100, max(2, len(model._whole) // 2))),
            description="k",
            continuous_update=True,
            style=_WIDE,
            layout=w.Layout(width="auto"),
        )
        self.slider.observe(lambda change: self._ask(setattr, model, "k", change["new"]), "value")
        self.boxes = {
            name: w.Checkbox(
                value=name in model.methods,
                description=name,
                indent=False,
                tooltip=f"{method.summary} ({method.guarantee})",
                layout=w.Layout(width="auto"),
            )
            for name, method in REGISTRY.items()
        }
        for box in self.boxes.values():
            box.observe(lambda change: self._ask(self._take_methods), "value")
        self.size = w.Dropdown(
            options=self._sizes(), value=model.partition_size, description="partition", style=_WIDE,
            layout=w.Layout(width="auto"),
        )  # fmt: skip
        self.size.observe(lambda change: self._ask(setattr, model, "partition_size", change["new"]), "value")
        self.run = w.Button(description="Run", button_style="primary", tooltip="Run the chosen methods")
        self.stop = w.Button(description="Cancel", tooltip="Stop; what is finished stays")
        self.run.on_click(lambda _: self._ask(model.start))
        self.stop.on_click(lambda _: self._ask(model.cancel))
        self.hint = w.HTML()
        self.status = w.HTML()
        self.bars = w.VBox()
        self.numbers = w.HTML()
        self.results = w.HTML()
        self.pick = w.Dropdown(
            options=[("none yet", None)], value=None, description="show run", style=_WIDE,
            layout=w.Layout(width="24rem"),
        )  # fmt: skip
        self.pick.observe(self._picked, "value")
        self.plots = [w.HTML() for _ in _PLOTS]
        tabs = w.Tab(children=self.plots, titles=list(_PLOTS))
        columns = w.VBox(list(self.roles.values()), layout=w.Layout(max_height="19rem", overflow="auto"))
        left = w.VBox(
            [
                _title(HOW_STRONG), self.strength, _title(HOW_LONG), self.time, self.best,
                _title("Columns"), columns,
                _title("Protection"), self.slider, self.hint,
                _title("Methods"),
                w.GridBox(list(self.boxes.values()), layout=w.Layout(grid_template_columns="1fr 1.2fr")),
                self.size, w.HBox([self.run, self.stop]), self.status, self.bars,
            ],
            layout=w.Layout(width="23rem", flex="0 0 auto", padding="0 1.5rem 0 0"),
        )  # fmt: skip
        right = w.VBox(
            [
                _title("Runs", "Loss and plots are the owner’s: they are not to be published."),
                self.numbers,
                self.results,
                self.pick,
                tabs,
            ],
            layout=w.Layout(flex="1 1 30rem", min_width="0"),
        )
        self.panel = w.HBox([left, right], layout=w.Layout(flex_flow="row wrap", width="100%"))

    def _sizes(self) -> list[tuple[str, int | None]]:
        n, cut_size = len(self.exploration._whole), self.exploration.partition_size
        sizes = sorted({size for size in SIZES if size < n} | ({cut_size} if cut_size is not None else set()))
        return [(f"{size:,} records", size) for size in sizes] + [("whole table", None)]

    # ------------------------------------------------------------------------------- both directions

    def _ask(self, take_over: Any, *values: Any) -> None:
        """Set the model to the value of a widget, unless the widget shows the present state."""
        # an event of another thread waits while the widgets are drawn; events that the drawing causes are ignored
        with self._busy:
            if self._hushed:
                return
            try:
                take_over(*values)
            except AnonflowError as error:
                self.status.value = _paragraphs(*error.problems)

    def _take_methods(self) -> None:
        self.exploration.methods = [name for name, box in self.boxes.items() if box.value]

    def _strengthened(self, change: Any) -> None:
        if change["new"] is not None:
            self._ask(setattr, self.exploration, "k", change["new"])

    def _picked(self, change: Any) -> None:
        if change["new"] is not None:
            self._ask(self.exploration.choose, change["new"])

    def _changed(self) -> None:
        """Show the model's progress at intervals; any thread may call this."""
        model = self.exploration
        if model.running and model.progress and time.monotonic() - self._last_shown < PAUSE:
            same = (model.status, len(model.finished)) == self._drawn[:2]
            if same:
                return
        self._last_shown = time.monotonic()
        self._refresh()

    def _refresh(self) -> None:
        """Show the state of the model."""
        model = self.exploration
        with self._busy:
            self._hushed = True
            try:
                for name, role in model.roles.items():
                    self.roles[name].value = role
                self.strength.value = model.k if model.k in STRENGTHS.values() else None
                self.slider.max = max(self.slider.max, model.k)
                self.slider.value = model.k
                for name, box in self.boxes.items():
                    box.value = name in model.methods
                if model.partition_size not in [value for _, value in self.size.options]:
                    self.size.options = self._sizes()
                self.size.value = model.partition_size
                self._show_state()
                self._show_results()
            finally:
                self._hushed = False

    def _show_state(self) -> None:
        model = self.exploration
        problems = () if model.running else model.problems
        self.run.disabled = model.running or bool(problems)
        self.best.disabled = model.running or model.table is None
        self.stop.disabled = not model.running
        self.hint.value = self._hint()
        self.status.value = _paragraphs(*(problems or (model.status,)))
        if set(self._bars) != set(model.progress):
            self._bars = {
                name: w.FloatProgress(description=name, max=1.0, style=_WIDE, layout=w.Layout(width="auto"))
                for name in model.progress
            }
            self.bars.children = tuple(self._bars.values())
        for name, fraction in model.progress.items():
            self._bars[name].value = fraction

    def _hint(self) -> str:
        model = self.exploration
        unique = model.unique
        if unique is None or not unique.n:
            return ""
        risk = unique.at_risk(model.k)
        return _paragraphs(
            f"{unique.unique:,} of {plural(unique.n, 'record')} ({share(unique.unique, unique.n)}) {verb_of(unique.unique, 'are')} unique "
            f"on these quasi-identifiers; {risk:,} ({share(risk, unique.n)}) {verb_of(risk, 'share')} theirs with fewer than k - 1 others."
        )

    def _show_results(self) -> None:
        model = self.exploration
        visible_run = model.shown
        now = (model.status, len(model.finished), None if visible_run is None else visible_run.number)
        if now[1:] == self._drawn[1:]:
            self._drawn = now
            return
        self._drawn = now
        self.numbers.value = self._four_numbers(visible_run)
        self.results.value = _runs_table(model.finished, visible_run)
        ready = [run for run in model.finished if run.result.anonymization is not None]
        options: list[tuple[str, int | None]] = [(run.name, run.number) for run in ready]
        options = options or [("none yet", None)]
        if list(self.pick.options) != options:
            self.pick.options = options
        self.pick.value = None if visible_run is None and not ready else (visible_run or ready[0]).number
        for plot, draw in zip(self.plots, _PLOTS.values(), strict=True):
            plot.value = draw(model.finished, visible_run)

    def _four_numbers(self, run: Finished | None) -> str:
        """Return people at risk before and after, loss, failing checks and seconds of the run that is shown."""
        unique = self.exploration.unique
        if run is None or unique is None:
            return ""
        result = run.result
        before = unique.at_risk(result.k)
        # a person may have several records
        anonymization = result.anonymization
        unit = "people" if anonymization is None or anonymization.table.unit is None else "records"
        return view(
            "",
            facts(
                [
                    (f"{unit} at risk", f"{before:,} → {result.at_risk(before):,}"),
                    ("loss (GCP)", f"{result.measures['gcp']:.3f}"),
                    ("failing checks", result.failing),
                    ("seconds, without compiling", f"{result.seconds:.1f}"),
                ]
            ),
        )

    # ---------------------------------------------------------------------------------------- display

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the widgets if the front end can show them, otherwise the results so far."""
        representation = self.panel._repr_mimebundle_(**options)
        bundle, metadata = representation if isinstance(representation, tuple) else (representation, {})
        bundle = {**bundle, "text/plain": repr(self), "text/html": self._still()}
        return bundle, metadata

    def _still(self) -> str:
        model = self.exploration
        visible_run = model.shown
        return view(
            "Explorer",
            facts(
                [("records", f"{len(model._whole):,}"), ("k", model.k), ("methods", ", ".join(model.methods))]
            ),
            _runs_table(model.finished, visible_run),
            *(draw(model.finished, visible_run) for draw in _PLOTS.values() if model.finished),
            owner=True,
        )

    def __repr__(self) -> str:
        model = self.exploration
        return (
            f"Explorer({len(model._whole)} records, k={model.k}, methods={', '.join(model.methods) or 'none'}, "
            f"{len(model.finished)} runs)"
        )


# ------------------------------------------------------------------------------------ what is drawn


def _title(text: str, hint: str = "") -> Any:
    return w.HTML(Markup('<b>{}</b> <span style="opacity:.7;padding-left:1em">{}</span>').format(text, hint))


def _runs_table(finished: tuple[Finished, ...], visible_run: Finished | None) -> str:
    if not finished:
        return _paragraphs("Results appear here, a row for each run.")
    hidden = any(run.result.suppressed for run in finished)
    rows = []
    for run in finished:
        result, anonymization = run.result, run.result.anonymization
        size = None if anonymization is None else anonymization.parameters["partition_size"]
        row = [
            run.number,
            result.algorithm,
            result.k,
            "whole" if size is None else f"{size:,}",
            or_dash(result.measures.get("gcp")),
            or_dash(result.measures.get("usefulness"), ".3f"),
            *([f"{result.suppressed:,}"] if hidden else []),
            f"{result.seconds:.2f}",
            result.checks,
        ]
        rows.append([Markup("<b>{}</b>").format(cell) for cell in row] if run is visible_run else row)
    suppressed_header = ["suppressed"] if hidden else []
    header = ["run", "method", "k", "partition", "GCP", "usefulness", *suppressed_header, "seconds", "checks"]
    table = grid(
        header, rows, numbers=[at for at, name in enumerate(header) if name not in ("method", "checks")]
    )
    sentences = [(run.name, run.result.problem or run.result.over_budget) for run in finished]
    problems = [note(f"{name}: {sentence}") for name, sentence in sentences if sentence]
    return view("", table, *problems)


def _paragraphs(*sentences: str) -> str:
    """Return sentences as HTML with the line spacing of text, which is wider than that of widgets."""
    lines = Markup("").join(
        Markup('<div class="anonflow-said">{}</div>').format(sentence) for sentence in sentences
    )
    return Markup('<div style="line-height:1.4;padding:.3em 0">{}</div>').format(lines)


def _against_k(finished: tuple[Finished, ...], visible_run: Finished | None) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    successful_runs = [run for run in finished if run.result.problem is None]
    kinds = list(dict.fromkeys(map(_columns_of, successful_runs)))
    for run in successful_runs:
        # losses over different quasi-identifiers are not comparable, so they are not points of one line
        number = kinds.index(_columns_of(run)) + 1
        name = f"{run.result.algorithm}, columns {number}" if len(kinds) > 1 else run.result.algorithm
        series.setdefault(name, []).append((run.result.k, run.result.measures["gcp"]))
    if not series:
        return _paragraphs("Run something first.")
    drawn = plots.lines(
        {name: sorted(points) for name, points in series.items()}, "Information loss against k", "k", "GCP"
    )
    if len(kinds) == 1:
        return drawn
    return drawn + _paragraphs(*(f"Columns {at}: {', '.join(names)}." for at, names in enumerate(kinds, 1)))


def _columns_of(run: Finished) -> tuple[str, ...]:
    """Return the quasi-identifiers of a run."""
    return tuple(column.column for column in run.result.columns)


def _by_column(finished: tuple[Finished, ...], run: Finished | None) -> str:
    if run is None:
        return _paragraphs("Run something first.")
    columns = run.result.columns
    return _paragraphs(f"Run {run.name}: 0% is the value itself, 100% is published as *.") + plots.bars(
        [column_loss.column for column_loss in columns],
        [column_loss.loss for column_loss in columns],
        "Information loss by column",
    )


def _by_size(finished: tuple[Finished, ...], run: Finished | None) -> str:
    if run is None:
        return _paragraphs("Run something first.")
    sizes, anonymization = run.result.sizes, run.result.anonymization
    unit = (
        "matches"
        if anonymization is not None and anonymization.matches is not None
        else "records in the class"
    )
    if not sizes:
        return _paragraphs(f"Run {run.name}: this method has neither matches nor classes.")
    if len(sizes) == 1:
        return _paragraphs(f"Run {run.name}: each of the {sizes[0][1]:,} records has {sizes[0][0]:,} {unit}.")
    return _paragraphs(f"Run {run.name}") + plots.columns(sizes, "How many records have how many", unit)


_PLOTS = {"loss against k": _against_k, "loss by column": _by_column, "class sizes": _by_size}
