"""The parts of the screen Risk: markup of the computed risk, in which every text of the table is escaped."""

from __future__ import annotations

from markupsafe import Markup

from anonflow.dashboards.components.html import cards, facts, soft
from anonflow.dashboards.risk.model import PictureOfRisk
from anonflow.drawing.column_sets import column_sets
from anonflow.drawing.comparisons import heat
from anonflow.drawing.plots import bars
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.risk.attacker import THRESHOLD
from anonflow.risk.attackers.population import PopulationRisk
from anonflow.risk.before import RiskBefore
from anonflow.risk.register import RegisterFits
from anonflow.table.identification.population import NOT_ESTIMABLE, Estimate

DRAWN = 20
"""Sets in the picture, the riskiest."""

LISTED = 100
"""Sets in the table below it."""

PAIRED = 24
"""Columns in the table of pairs."""


def alone(risk: RiskBefore) -> Markup:
    """Return the unique records: numbers, and how they grow with the attacker's knowledge."""
    n = max(risk.records, 1)
    m = risk.sets.most
    numbers = cards(
        [
            (f"{risk.records:,}", "records"),
            (f"{risk.unique:,}", "unique on all quasi-identifiers"),
            (f"{risk.special:,}", f"special uniques: on {plural(m, 'column')} or fewer"),
            (f"{int(risk.sizes.min(initial=n)):,}", "records in the smallest class"),
            (f"{risk.average:.1%}", "average risk (1 / class size)"),
            (f"{risk.above():,}", f"records with a risk above {THRESHOLD:g}"),
        ]
    )
    uniques = [(f"any {plural(s, 'column')}", count) for s, count in risk.unique_by_size()]
    if len(risk.columns) > m:
        uniques.append((f"all {len(risk.columns)} columns", risk.unique))
    picture = bars(
        [name for name, _ in uniques],
        [count / n for _, count in uniques],
        "Records that are unique for somebody who knows so many columns",
    )
    return Markup("{}<h4>{}</h4>{}<p class='soft'>{}</p>").format(
        numbers,
        "Unique for somebody who knows",
        picture,
        "A special unique is unique by few values: changes of the other columns do not hide it.",
    )


def column_sets_of(risk: RiskBefore, size: int | None = None) -> Markup:
    """Return the riskiest sets of columns, drawn; of one size, where it is named."""
    at = _riskiest_sets(risk, size)[:DRAWN]
    n = max(risk.records, 1)
    sets = risk.sets
    rows = [
        (sets.sets[index], sets.uniques[index] / n, sets.minimal[index] / n,
         f"{(sets.uniques[index] / n):.1%}, {plural(int(sets.uniques[index]), 'record')}")
        for index in at
    ]  # fmt: skip
    used = sorted({column for members, *_ in rows for column in members})
    place = {column: number for number, column in enumerate(used)}
    drawn = column_sets(
        [sets.columns[column] for column in used],
        [([place[a] for a in members], *others) for members, *others in rows],
        f"The {'set' if len(rows) == 1 else f'{len(rows)} sets'} of columns on which most records are unique",
    )
    return Markup(
        "<p class='soft'><svg width='12' height='12' aria-hidden='true'><rect width='12' height='12' rx='2' fill='#2a7fb8'/></svg> "
        "{} \N{NO-BREAK SPACE} "
        "<svg width='12' height='12' aria-hidden='true'><rect width='12' height='12' rx='2' fill='#7fb8de'/></svg> "
        "{}</p><div class='scroll wide' tabindex='0' role='group' aria-label='{}'>{}</div>"
    ).format(
        "unique on these columns and on no fewer of them (minimal sample uniques)",
        "unique on fewer of them already",
        "Sets of columns",
        drawn,
    )


def sets_table(risk: RiskBefore, size: int | None = None) -> Markup:
    """Return the same sets and more of them as a table, folded."""
    at = _riskiest_sets(risk, size)[:LISTED]
    sets, n = risk.sets, max(risk.records, 1)
    rows = [
        [
            ", ".join(sets.columns[a] for a in sets.sets[index]),
            f"{sets.uniques[index]:,}",
            f"{sets.minimal[index]:,}",
            f"{sets.smallest[index]:,}",
            f"{sets.classes[index] / n:.2%}",
        ]
        for index in at
    ]
    of_all = len(_riskiest_sets(risk, size))
    extent = f": the first {len(at):,} of {of_all:,}" if len(at) < of_all else ""
    return Markup("<details><summary>{}</summary>{}</details>").format(
        f"The same as a table{extent}",
        facts(("columns", "unique", "minimal uniques", "smallest class", "average risk"), rows, range(1, 5)),
    )


def _riskiest_sets(risk: RiskBefore, size: int | None) -> list[int]:
    """Return places of the sets of a size, or of all, most uniques first, then small ones first."""
    sets = risk.sets
    places = [at for at, members in enumerate(sets.sets) if size is None or len(members) == size]
    return sorted(places, key=lambda at: (-int(sets.uniques[at]), len(sets.sets[at]), at))


def pairs_of(risk: RiskBefore) -> Markup:
    """Return the share of records that are unique on each pair of columns, and on each column: a shaded table."""
    sets, n = risk.sets, max(risk.records, 1)
    if sets.most < 2 or len(risk.columns) < 2:
        return Markup("")
    share = {members: sets.uniques[at] / n for at, members in enumerate(sets.sets) if len(members) <= 2}
    parts = sets.contributions()["minimal uniques"].to_numpy()
    places = sorted(sorted(range(len(sets.columns)), key=lambda a: -int(parts[a]))[:PAIRED])
    names = [sets.columns[a] for a in places]
    values: list[list[float | None]] = [
        [share[(a,)] if a == b else share[(min(a, b), max(a, b))] for b in places] for a in places
    ]
    hidden_columns = len(sets.columns) - len(places)
    note = (
        f" {plural(hidden_columns, 'column')} of the least risk {verb_of(hidden_columns, 'are')} left out."
        if hidden_columns
        else ""
    )
    return Markup("<h4>{}</h4><p class='soft'>{}{}</p>{}").format(
        "By two columns",
        "The share of records that are unique on each pair; in the diagonal, on the column alone. The largest is shaded most.",
        note,
        heat(names, names, values, darkest=max(share.values())),
    )


def column_parts(risk: RiskBefore) -> Markup:
    """Return how much each column adds: its part in the minimal sample uniques."""
    contributions = risk.sets.contributions().sort_values("share", ascending=False, kind="stable")
    if not int(contributions["minimal uniques"].sum()):
        return Markup("<p>{}</p>").format(_none_unique(risk.sets.most))
    title = "Share of the minimal sample uniques that contain each column"
    return bars(contributions["column"].tolist(), contributions["share"].tolist(), title)


def riskiest(picture: PictureOfRisk) -> Markup:
    """Return the records of the highest scores with their values: the owner's."""
    risk = picture.risk
    if not len(picture.riskiest):
        return Markup("<p>{}</p>").format(_none_unique(risk.sets.most))
    rows = []
    for figures, sets, cells in zip(
        picture.riskiest.to_dict("records"),
        picture.smallest,
        picture.values.itertuples(index=False, name=None),
        strict=True,
    ):
        rows.append(
            [
                f"{figures['position']:,}",
                f"{figures['score']:,}",
                f"{figures['minimal uniques']:,}",
                *(
                    Markup("<mark>{}</mark>").format(cell) if name in sets[0] else str(cell)
                    for name, cell in zip(risk.columns, cells, strict=True)
                ),
            ]
        )
    return facts(["record", "score", "minimal uniques", *risk.columns], rows, range(3))


def population(risk: PopulationRisk) -> Markup:
    """Return unique people of the population by each model, and the individual risks."""
    numbers = cards(
        [
            (f"{risk.people:,.0f}", "people in the population"),
            (f"{risk.expected:,.1f}", "records expected to be linked correctly"),
            (f"{risk.average:.2%}", "average individual risk"),
            (f"{float(risk.risks.max(initial=0)):.2%}", "highest individual risk"),
            (f"{risk.above():.1%}", f"of the records above {THRESHOLD:g}"),
        ]
    )
    paragraphs = Markup("").join(Markup("<p>{}</p>").format(sentence) for sentence in risk.sentences())
    if not risk.estimates:
        return Markup("{}{}").format(numbers, paragraphs)
    rows = [
        [
            Markup("<b>{}</b>").format(estimate.model) if estimate is risk.chosen else estimate.model,
            f"{estimate.uniques:,.1f}" if estimate.is_there else NOT_ESTIMABLE,
            f"{estimate.uniques / risk.people:.2%}" if estimate.is_there else "",
            _interval(estimate),
            "picked by Dankar's rule" if estimate is risk.chosen else "",
        ]
        for estimate in risk.estimates
    ]
    return Markup("{}{}{}").format(
        numbers,
        paragraphs,
        facts(
            (
                "model",
                "unique people of the population",
                "share",
                "with confidence 95%, if the model holds",
                "",
            ),
            rows,
            [1, 2],
        ),
    )


def register(figures: RegisterFits) -> Markup:
    """Return whom of a register the records fit: numbers, and what they mean."""
    return Markup("{}<p class='soft'>{}</p>").format(
        cards(
            [
                (f"{figures.people:,}", "people in the register"),
                (f"{figures.single:,}", "records that fit exactly one of them"),
                (f"{figures.nobody:,}", "records that fit none of them"),
                (f"{figures.average:.2%}", "average chance of naming a record's person"),
            ]
        ),
        (
            "These figures describe the original records. Somebody who compares the table with this register names the person of each "
            "record that fits exactly one. The attackers try the register on a release, too: see its report."
        ),
    )


def _interval(estimate: Estimate) -> str:
    if not estimate.is_there or estimate.low != estimate.low:
        return estimate.why
    return f"{estimate.low:,.1f} to {estimate.high:,.1f} {estimate.why}"


def owners(risk: RiskBefore) -> Markup:
    """Return people with several rows, and households."""
    both = (("people (the unit)", risk.people), ("households", risk.households))
    rows = [
        [
            name,
            f"{of.number:,}",
            f"{of.most_rows:,}",
            f"{of.alone:,}",
            f"{of.average:.1%}",
            f"{of.highest:.1%}",
        ]
        for name, of in both
        if of is not None
    ]
    titles = ("", "how many", "largest number of rows", "with a unique row", "average risk", "highest risk")
    note = "Risk: the probability that somebody who knows all rows of a person names one of them correctly."
    return facts(titles, rows, range(1, 6)) + soft(note)


def _none_unique(columns: int) -> str:
    """Return that no record is unique."""
    return f"No record is unique on {plural(columns, 'column')} or fewer."
