"""The parts of the screen Risk: markup of the computed risk, in which every text of the table is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from anonflow.dashboards.components.html import cards, facts
from anonflow.dashboards.risk import texts
from anonflow.dashboards.risk.model import PictureOfRisk
from anonflow.dashboards.session.draft_spec import ColumnSpec
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.drawing.column_sets import column_sets
from anonflow.drawing.comparisons import heat
from anonflow.drawing.plots import bars
from anonflow.risk.attacker import THRESHOLD
from anonflow.risk.attackers.population import PopulationRisk
from anonflow.risk.before import Owners, RiskBefore
from anonflow.risk.register import RegisterFits
from anonflow.table.identification.population import NOT_ESTIMABLE, Estimate
from anonflow.table.infer import Advice

__all__ = [
    "alone",
    "column_parts",
    "column_sets_of",
    "owners",
    "pairs_of",
    "population",
    "reasons",
    "register",
    "riskiest",
    "sets_table",
]

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
            (f"{risk.records:,}", texts.RECORDS),
            (f"{risk.unique:,}", texts.UNIQUE_ON_ALL),
            (f"{risk.special:,}", texts.special_uniques(m)),
            (f"{int(risk.sizes.min(initial=n)):,}", texts.SMALLEST_CLASS),
            (f"{risk.average:.1%}", texts.AVERAGE_RISK_OF_CLASSES),
            (f"{risk.above():,}", texts.above(THRESHOLD)),
        ]
    )
    known = [(texts.any_columns(s), count) for s, count in risk.unique_by_size()]
    if len(risk.columns) > m:
        known.append((texts.all_columns(len(risk.columns)), risk.unique))
    picture = bars(
        [name for name, _ in known],
        [count / n for _, count in known],
        texts.UNIQUE_TO_WHO_KNOWS_PICTURE,
    )
    return Markup("{}<h4>{}</h4>{}<p class='soft'>{}</p>").format(
        numbers, texts.UNIQUE_TO_WHO_KNOWS, picture, texts.SPECIAL_UNIQUE
    )


def column_sets_of(risk: RiskBefore, size: int | None = None) -> Markup:
    """Return the riskiest sets of columns, drawn; of one size, where it is named."""
    at = _riskiest_sets(risk, size)[:DRAWN]
    n = max(risk.records, 1)
    sets = risk.sets
    rows = [
        (sets.sets[each], sets.uniques[each] / n, sets.minimal[each] / n,
         texts.share_of_records(sets.uniques[each] / n, int(sets.uniques[each])))
        for each in at
    ]  # fmt: skip
    used = sorted({column for members, *_ in rows for column in members})
    place = {column: number for number, column in enumerate(used)}
    drawn = column_sets(
        [sets.columns[column] for column in used],
        [([place[a] for a in members], *others) for members, *others in rows],
        texts.riskiest_sets(len(rows)),
    )
    return Markup(
        "<p class='soft'><svg width='12' height='12' aria-hidden='true'><rect width='12' height='12' rx='2' fill='#2a7fb8'/></svg> "
        "{} \N{NO-BREAK SPACE} "
        "<svg width='12' height='12' aria-hidden='true'><rect width='12' height='12' rx='2' fill='#7fb8de'/></svg> "
        "{}</p><div class='scroll wide' tabindex='0' role='group' aria-label='{}'>{}</div>"
    ).format(texts.UNIQUE_ON_THESE, texts.UNIQUE_ON_FEWER, texts.COLUMN_SETS, drawn)


def sets_table(risk: RiskBefore, size: int | None = None) -> Markup:
    """Return the same sets and more of them as a table, folded."""
    at = _riskiest_sets(risk, size)[:LISTED]
    sets, n = risk.sets, max(risk.records, 1)
    rows = [
        [
            ", ".join(sets.columns[a] for a in sets.sets[each]),
            f"{sets.uniques[each]:,}",
            f"{sets.minimal[each]:,}",
            f"{sets.smallest[each]:,}",
            f"{sets.classes[each] / n:.2%}",
        ]
        for each in at
    ]
    return Markup("<details><summary>{}</summary>{}</details>").format(
        texts.as_table(len(at), len(_riskiest_sets(risk, size))),
        facts(texts.SETS_HEADER, rows, range(1, 5)),
    )


def _riskiest_sets(risk: RiskBefore, size: int | None) -> list[int]:
    """Return places of the sets of a size, or of all, most uniques first, then small ones first."""
    sets = risk.sets
    places = [at for at, each in enumerate(sets.sets) if size is None or len(each) == size]
    return sorted(places, key=lambda at: (-int(sets.uniques[at]), len(sets.sets[at]), at))


def pairs_of(risk: RiskBefore) -> Markup:
    """Return the share of records that are unique on each pair of columns, and on each column: a shaded table."""
    sets, n = risk.sets, max(risk.records, 1)
    if sets.most < 2 or len(risk.columns) < 2:
        return Markup("")
    share = {each: sets.uniques[at] / n for at, each in enumerate(sets.sets) if len(each) <= 2}
    parts = sets.contributions()["minimal uniques"].to_numpy()
    shown = sorted(sorted(range(len(sets.columns)), key=lambda a: -int(parts[a]))[:PAIRED])
    names = [sets.columns[a] for a in shown]
    values: list[list[float | None]] = [
        [share[(a,)] if a == b else share[(min(a, b), max(a, b))] for b in shown] for a in shown
    ]
    left = len(sets.columns) - len(shown)
    note = f" {texts.columns_left_out(left)}" if left else ""
    return Markup("<h4>{}</h4><p class='soft'>{}{}</p>{}").format(
        texts.BY_TWO, texts.ABOUT_BY_TWO, note, heat(names, names, values, darkest=max(share.values()))
    )


def column_parts(risk: RiskBefore) -> Markup:
    """Return how much each column adds: its part in the minimal sample uniques."""
    each = risk.sets.contributions().sort_values("share", ascending=False, kind="stable")
    if not int(each["minimal uniques"].sum()):
        return Markup("<p>{}</p>").format(texts.none_unique(risk.sets.most))
    return Markup("{}").format(
        bars(
            each["column"].tolist(),
            each["share"].tolist(),
            texts.FROM_COLUMNS_PICTURE,
        )
    )


def riskiest(picture: PictureOfRisk) -> Markup:
    """Return the records of the highest scores with their values: the owner's."""
    risk = picture.risk
    if not len(picture.riskiest):
        return Markup("<p>{}</p>").format(texts.none_unique(risk.sets.most))
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
    return facts([*texts.RISKIEST_HEADER, *risk.columns], rows, range(3))


def population(risk: PopulationRisk) -> Markup:
    """Return unique people of the population by each model, and the individual risks."""
    numbers = cards(
        [
            (f"{risk.people:,.0f}", texts.PEOPLE_IN_POPULATION),
            (f"{risk.expected:,.1f}", texts.LINKED_RIGHTLY),
            (f"{risk.average:.2%}", texts.AVERAGE_RISK),
            (f"{float(risk.risks.max(initial=0)):.2%}", texts.HIGHEST_RISK),
            (f"{risk.above():.1%}", texts.share_above(THRESHOLD)),
        ]
    )
    paragraphs = Markup("").join(Markup("<p>{}</p>").format(each) for each in risk.sentences())
    if not risk.estimates:
        return Markup("{}{}").format(numbers, paragraphs)
    rows = [
        [
            Markup("<b>{}</b>").format(each.model) if each is risk.chosen else each.model,
            f"{each.uniques:,.1f}" if each.is_there else NOT_ESTIMABLE,
            f"{each.uniques / risk.people:.2%}" if each.is_there else "",
            _interval(each),
            texts.PICKED if each is risk.chosen else "",
        ]
        for each in risk.estimates
    ]
    return Markup("{}{}{}").format(numbers, paragraphs, facts(texts.ESTIMATES_HEADER, rows, [1, 2]))


def register(figures: RegisterFits) -> Markup:
    """Return whom of a register the records fit: numbers, and what they mean."""
    return Markup("{}<p class='soft'>{}</p>").format(
        cards(
            [
                (f"{figures.people:,}", texts.PEOPLE_IN_REGISTER),
                (f"{figures.single:,}", texts.FIT_ONE),
                (f"{figures.nobody:,}", texts.FIT_NONE),
                (f"{figures.average:.2%}", texts.CHANCE),
            ]
        ),
        texts.ABOUT_FIGURES,
    )


def _interval(estimate: Estimate) -> str:
    if not estimate.is_there or estimate.low != estimate.low:
        return estimate.why
    return texts.interval(estimate.low, estimate.high, estimate.why)


def owners(risk: RiskBefore) -> Markup:
    """Return people with several rows, and households."""
    rows = [
        [
            name,
            f"{each.number:,}",
            f"{each.most_rows:,}",
            f"{each.alone:,}",
            f"{each.average:.1%}",
            f"{each.highest:.1%}",
        ]
        for name, each in _owners(risk)
    ]
    return Markup("{}<p class='soft'>{}</p>").format(
        facts(texts.OWNERS_HEADER, rows, range(1, 6)), texts.ABOUT_OWNERS
    )


def _owners(risk: RiskBefore) -> list[tuple[str, Owners]]:
    both = ((texts.PEOPLE, risk.people), (texts.HOUSEHOLDS, risk.households))
    return [(name, each) for name, each in both if each is not None]


def reasons(advice: Sequence[Advice], columns: Mapping[str, ColumnSpec]) -> Markup:
    """Return the advisor's reasons for each column, beside the draft's declaration.

    Parameters
    ----------
    advice : sequence of Advice
    columns : mapping of str to ColumnSpec
        Of the draft.
    """
    rows = []
    for each in sorted(advice, key=lambda advised: _rank(advised, columns)):
        role = columns.get(each.column, ColumnSpec()).role or texts.NOT_PUBLISHED
        proposed = each.entry["role"]
        rows.append(
            [
                Markup("<b>{}</b>").format(each.column),
                Markup("<span class='whole'>{}</span>").format(role),
                Markup("<span class='whole'>{}</span>").format(proposed)
                if proposed == role
                else Markup("<b class='whole'>→ {}</b>").format(proposed),
                f"{each.distinct:,}",
                "; ".join(map(on_screen, each.reasons)),
            ]
        )
    return Markup("<div class='reasons'>{}</div>").format(facts(texts.REASONS_HEADER, rows, [3]))


def _rank(advice: Advice, columns: Mapping[str, ColumnSpec]) -> tuple[bool, int, int]:
    """Return columns with another role than the guess first, then identifiers, quasi-identifiers, and the most distinct."""
    role = columns.get(advice.column, ColumnSpec()).role
    order = ["identifier", "quasi-identifier", "sensitive", "weight"]
    place = order.index(role) if role in order else len(order)
    return role == advice.entry["role"], place, -advice.distinct
