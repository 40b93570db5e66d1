"""The release card: the promise of a release, the attackers' results, and the cost of each remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import escape

from anonflow import risk
from anonflow.algorithms.anonymize import Anonymization, anonymize
from anonflow.algorithms.diversity.diversify import diversify
from anonflow.algorithms.diversity.target import check_diversity
from anonflow.criteria import Finding, verify
from anonflow.criteria.registry import promise_of
from anonflow.drawing import grid, note, or_dash, view
from anonflow.errors import DataError, InfeasibleError, ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.option import is_finite
from anonflow.release import Release, publish
from anonflow.release.randomness import checked_seed, derived_seed
from anonflow.risk.attack import OF_THE_ROW, is_publishable, row_of
from anonflow.risk.attack_context import PAIRS
from anonflow.table import Table
from anonflow.table.identification.exposure import exposed_columns
from anonflow.utility import measure

LINES = ("promise", "measured", "homogeneity", "insider", "linkable columns", "utility")

SAMPLE = 5_000
"""Records that a remedy is tried on at most: whole partitions of a larger table."""

ENOUGH = 2_000
"""Records after which no further partition of a larger table is added."""

PASSED, FAILED, NOT_MEASURED, NO_VERDICT = "passed", "failed", "not measured", "–"


@dataclass(frozen=True)
class Remedy:
    """A remedy for a line that fails.

    Attributes
    ----------
    action : str
        Such as ``l = 2``.
    price : float or None
        By how much the GCP rises; None where that is not known.
    note : str
        A remark: why there is no price, or what else is lost.
    change : tuple of (path, value)
        What it changes in a flow: places, such as ``("steps", "anonymize", "k")``, and what stands there then. Empty if a flow cannot
        say it.
    """

    action: str
    price: float | None = None
    note: str = ""
    change: tuple[tuple[tuple[str, ...], Any], ...] = field(default=(), repr=False, compare=False)

    def sentence(self) -> str:
        """Return such as ``l = 2 costs +0.012 GCP``."""
        cost = "" if self.price is None else f" costs {self.price:+z.3f} GCP"
        return f"{self.action}{cost}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class CardLine:
    """One line of a release card.

    Attributes
    ----------
    name : str
        One of :data:`LINES`.
    verdict : {"passed", "failed", "not measured", "–"}
        "–" if the line is not judged.
    says : str
        The finding, a sentence of names and numbers.
    remedies : tuple of Remedy
        Of a line that fails.
    """

    name: str
    verdict: str
    says: str
    remedies: tuple[Remedy, ...] = ()

    def sentence(self) -> str:
        """Return the line with its remedies."""
        remedies = "; ".join(remedy.sentence() for remedy in self.remedies)
        return f"{self.name}: {self.verdict}. {self.says}" + (f" What to do: {remedies}." if remedies else "")


@dataclass(frozen=True)
class ReleaseCard:
    """The facts about a release that its owner needs before publishing it: names and numbers, never a cell's value.

    Attributes
    ----------
    lines : tuple of CardLine
        In the order of :data:`LINES`.
    threshold : float or None
        Each person's probability must be smaller than this threshold; without a threshold, 1/k is allowed.
    worst : float
        The largest probability with which an attacker points at a person's row.
    published : ReleaseCard or None
        The card that may be published: without figures that count a value which no published cell shows (prices of remedies,
        linkable columns, the loss on the domain of the originals). None for such a card itself.
    """

    lines: tuple[CardLine, ...]
    threshold: float | None
    worst: float
    published: ReleaseCard | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether no line fails. A line that was not measured has not passed: see the lines."""
        return not self.failing

    @property
    def failing(self) -> tuple[CardLine, ...]:
        """The lines that fail."""
        return tuple(line for line in self.lines if line.verdict == FAILED)

    def headline(self) -> str:
        """Return one sentence over the card."""
        if self.failing:
            names = ", ".join(line.name.capitalize() for line in self.failing)
            return f"{len(self.failing)} of {len(self.lines)} lines {verb_of(len(self.failing), 'fail')}: {names}."
        open_lines = [line.name.capitalize() for line in self.lines if line.verdict == NOT_MEASURED]
        if open_lines:
            return f"No line fails; not measured: {', '.join(open_lines)}."
        return "No line fails."

    def frame(self) -> pd.DataFrame:
        """Return the card as a frame: line, verdict, says, remedies."""
        rows = [
            (line.name, line.verdict, line.says, "; ".join(remedy.sentence() for remedy in line.remedies))
            for line in self.lines
        ]
        return pd.DataFrame(rows, columns=["line", "verdict", "says", "remedies"])

    def __repr__(self) -> str:
        return "\n".join([self.headline(), *(f"  {line.sentence()}" for line in self.lines)])

    def _repr_html_(self) -> str:
        rows = [[escape(cell) for cell in row] for row in self.frame().itertuples(index=False)]
        return view(
            "Release card",
            note(self.headline()),
            # complete sentences: they are not cut as cells are
            grid(
                ["line", "verdict", "what was found", "what to do"],
                rows,
            ),
        )


def release_card(
    anonymization: Anonymization,
    release: Release | None = None,
    *,
    threshold: float | None = None,
    prices: bool = True,
    seed: int | None = None,
) -> ReleaseCard:
    """Return promise, measured risk, homogeneity, insider, linkable columns and utility of a release, with prices of remedies.

    Parameters
    ----------
    anonymization : Anonymization
        The anonymization behind the release.
    release : Release, optional
        Drawn for the purpose, and not published, without it.
    threshold : float, optional
        Every attacker's largest probability must be smaller, such as 0.09; without it 1/k is allowed.
    prices : bool
        Whether remedies of failing lines are tried, each a run of the method on at most 5,000 records; otherwise they have no price.
    seed : int, optional
        Of whom the insider attacks, of the draw that it is judged by, and of the remedies.

    Returns
    -------
    ReleaseCard

    Raises
    ------
    ParameterError
        If it is no anonymization, the threshold is not a probability, or a seed cannot be used.
    DataError
        If the consistency graph is too large.

    Notes
    -----
    The card belongs to the owner; a published report contains its part `published`. No number on it uses the truth: the
    insider is measured on a fresh draw from the same matches. See :func:`cards_of`.
    """
    if not isinstance(anonymization, Anonymization):
        raise ParameterError(
            f"release_card takes what af.anonymize returns, not a {type(anonymization).__name__}"
        )
    check_threshold(threshold)
    root_seed = checked_seed(seed)
    if release is None:
        release = publish(anonymization, derived_seed(root_seed, "card's draw"), rehearsal=True)
        # a draw beside the one that the owner's folder may have would be intersected with it
        anonymization = replace(anonymization, earlier=None)
    criterion = anonymization.guarantee if release.certificate is None else release.certificate.criterion
    findings = verify(anonymization.table, release, ["covers", criterion], anonymization.k).findings
    return cards_of(anonymization, release, findings, None, [threshold], root_seed, prices)[0]


def check_threshold(threshold: float | None) -> None:
    """See that a threshold is a probability.

    Raises
    ------
    ParameterError
        If it is none.
    """
    if threshold is not None and not (is_finite(threshold) and 0 < threshold <= 1):
        raise ParameterError("threshold is a probability greater than 0 and at most 1, such as 0.09")


def cards_of(
    anonymization: Anonymization | None,
    release: Release | None,
    findings: Sequence[Finding],
    attacks: pd.DataFrame | None,
    thresholds: Sequence[float | None],
    seed: int,
    prices: bool = True,
    *,
    k: int | None = None,
    gcp: float | None = None,
    suppressed: int | None = None,
    guarantee: str | None = None,
    listed: bool | None = None,
    published_gcp: float | None = None,
    table: Table | None = None,
) -> list[ReleaseCard]:
    """Return the cards of a release, one for each threshold; attacks and remedies are computed once.

    Parameters
    ----------
    anonymization : Anonymization or None
        None where the table is not in memory: then only `attacks` and the numbers are on the card.
    release : Release or None
    findings : sequence of Finding
        What was verified.
    attacks : pandas.DataFrame or None
        What attackers were tried already, as :func:`anonflow.attack` gives it.
    thresholds : sequence of float or None
    seed : int
        128 bits.
    prices : bool
    k, gcp, suppressed, guarantee, listed : optional
        Where there is no anonymization.
    published_gcp : float, optional
        The GCP that may be published.
    table : Table, optional
        The originals, whose other columns are looked at; those of the anonymization without it.

    Returns
    -------
    list of ReleaseCard

    Raises
    ------
    DataError
        If the consistency graph is too large.
    """
    rows = {} if attacks is None else _by_attacker(attacks)
    context = None
    if anonymization is not None:
        k, guarantee = anonymization.k, anonymization.guarantee
        table = anonymization.table
        gcp = float(measure(table, anonymization, ["gcp"])["gcp"])
        suppressed = int(anonymization.suppressed.sum())
        listed = anonymization.matches is not None or anonymization.classes is not None
        if release is not None:
            context = risk.AttackContext.of(table, release, k, seed=derived_seed(seed, "attackers"))
            context = replace(context, earlier=anonymization.earlier)
            _add_missing(rows, context)
    assert k is not None
    priced = None
    if anonymization is not None:
        dealt = anonymization if context is None or not prices else plausible(anonymization, context, seed)
        priced = None if dealt is None else Prices(dealt, seed, prices)
    promise = _promise(guarantee or "", findings, k)
    homogeneity, insider = _homogeneity(rows, anonymization, priced), _insider(context, seed, priced)
    utility = _utility(gcp, suppressed)
    exposed = {} if table is None else exposed_columns(table, k)
    public = {
        name: public_rows
        for name, file_rows in rows.items()
        if listed and (public_rows := [row for row in file_rows if is_publishable(row)])
    }
    of_public = _homogeneity(public, anonymization, None), replace(insider, remedies=()), _OWNERS
    cards = []
    for threshold in thresholds:
        worst, measured = _measured(rows, k, threshold, priced)
        linkable = _linkable(rows, anonymization, threshold, exposed)
        lines = (promise, measured, homogeneity, insider, linkable, utility)
        highest, seen = _measured(public, k, threshold, None)
        others = (promise, seen, *of_public, _utility(published_gcp, suppressed))
        cards.append(ReleaseCard(lines, threshold, worst, ReleaseCard(others, threshold, highest)))
    return cards


def _utility(gcp: float | None, suppressed: int | None) -> CardLine:
    spent = f"GCP {or_dash(gcp)}, {plural(suppressed or 0, 'suppressed record')}."
    return CardLine("utility", NO_VERDICT, spent)


_OWNERS = CardLine(
    "linkable columns", NO_VERDICT, "These figures are counted on the originals, and are the owner's."
)
"""In the place of the line in a published card."""


def plausible(anonymization: Anonymization, context: risk.AttackContext, seed: int) -> Anonymization | None:
    """Return the same for a plausible table of the release: numbers that are computed on it reveal nothing about identities.

    Parameters
    ----------
    anonymization : Anonymization
    context : AttackContext
        Of a release of it.
    seed : int
        128 bits.

    Returns
    -------
    Anonymization or None
        None where the rows' lists are too long, or not known. O(n log n) with the truth of classes.

    Notes
    -----
    Its other columns are dealt to the originals by a fresh draw: from the rows' lists, inside each class, or, where a method
    publishes each record's own (k-concealment), among equal rows. Records whose columns are not published get those of
    another row.
    """
    table, suppressed = anonymization.table, anonymization.suppressed
    rng = np.random.default_rng(derived_seed(seed, "plausible"))
    if anonymization.matches is None and context.truth is not None:
        label = anonymization.classes
        label = anonymization.generalization.classes() if label is None else label
        row = np.empty(table.n, np.int64)
        row[np.lexsort((rng.random(table.n), label))] = np.argsort(label[context.truth], kind="stable")
    elif context.listing is None or not _lists_are_short(context):
        return None
    else:
        row = np.argsort(context.without_truth(rng).judged())
    if 0 < suppressed.sum() < min(anonymization.k * table.unit_rows, table.n):
        row[suppressed] = rng.choice(row[~suppressed], int(suppressed.sum()))
    others = {name: context.frame[name].iloc[row].to_numpy() for name in table.other_columns}
    return replace(anonymization, table=table.with_others(others))


def _by_attacker(attacks: pd.DataFrame) -> dict[str, list[Mapping[str, Any]]]:
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in attacks.to_dict("records"):
        rows.setdefault(str(row["attacker"]), []).append({str(key): value for key, value in row.items()})
    return rows


def judged_risk(
    anonymization: Anonymization,
    release: Release,
    attacks: pd.DataFrame | None,
    seed: int,
    by_keys: bool = False,
) -> float:
    """Return the largest probability of any person that a card judges by a threshold.

    Parameters
    ----------
    anonymization, release, attacks, seed
        As :func:`cards_of` takes them.
    by_keys : bool
        Whether only attackers count who know quasi-identifiers, and no other columns: those of a card without a threshold.

    Raises
    ------
    DataError
        If the consistency graph is too large.
    """
    rows = {} if attacks is None else _by_attacker(attacks)
    attack_seed = derived_seed(seed, "attackers")
    context = risk.AttackContext.of(anonymization.table, release, anonymization.k, seed=attack_seed)
    context = replace(context, earlier=anonymization.earlier)
    _add_missing(rows, context, _by_keys(OF_THE_ROW) if by_keys else OF_THE_ROW)
    return _measured(rows, anonymization.k, None, None)[0]


def _add_missing(
    rows: dict[str, list[Mapping[str, Any]]],
    context: risk.AttackContext,
    names: Collection[str] = tuple(risk.ATTACKERS),
) -> None:
    """Run the usual attackers of some names that were not run yet."""
    for attacker in risk.usual(context, publishable=True):
        times = len(context.table.sensitive) if risk.ATTACKERS[attacker.name].of_each_column else 1
        if attacker.name in names and len(rows.get(attacker.name, ())) < times:
            with suppress(DataError, ParameterError):
                rows.setdefault(attacker.name, []).append(row_of(attacker, attacker.attack(context)))


def _by_keys(names: Iterable[str]) -> list[str]:
    """Return the attackers who point at a row by quasi-identifiers alone."""
    return [name for name in names if not risk.ATTACKERS[name].of_other_columns]


def _promise(guarantee: str, findings: Sequence[Finding], k: int) -> CardLine:
    def named(*verdicts: bool | None) -> str:
        names = (finding.criterion for finding in findings if finding.holds in verdicts)
        return ", ".join(dict.fromkeys(names))

    broken, unchecked = named(False), named(None)
    promise = promise_of(guarantee, k) or f"{guarantee}, k = {k}."
    if broken:
        return CardLine("promise", FAILED, f"{promise} The verifier rejects {broken}.")
    if unchecked or not findings:
        return CardLine(
            "promise", NOT_MEASURED, f"{promise} The verifier could not check {unchecked or 'anything'}."
        )
    return CardLine("promise", PASSED, f"{promise} Verified: {named(True)}.")


def _measured(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], k: int, threshold: float | None, prices: Prices | None
) -> tuple[float, CardLine]:
    """Return the largest probability of any person over the attackers who point at a row."""
    names = [name for name in OF_THE_ROW if name in rows]
    by_keys = _by_keys(names)
    if not by_keys:
        return 1.0, CardLine("measured", NOT_MEASURED, "No attacker who points at a row was tried.")

    def largest(attackers: Sequence[str]) -> tuple[float, str]:
        return max((float(row["worst"]), name) for name in attackers for row in rows[name])

    worst = largest(names)[0]
    # 1/k holds against attackers who know the quasi-identifiers; a threshold holds for all attackers
    judged = by_keys if threshold is None else names
    probability, attacker = largest(judged)
    limit, sign = (1 / k, "at most") if threshold is None else (threshold, "below")
    good = probability <= limit * (1 + 1e-9) if threshold is None else probability < limit
    says = (
        f"For the most exposed person the probability is {_probability(probability)} that an attacker points at the right row "
        f"({attacker}{f', of {len(judged)} attackers' if len(judged) > 1 else ''}); {sign} {_probability(limit)} is allowed."
    )
    remedies: tuple[Remedy, ...] = ()
    by_rows = [name for name in by_keys if not risk.ATTACKERS[name].of_people]
    # the risk of people, and of households, with several rows
    says += "".join(f" {rows[name][0]['sentence']}" for name in by_keys if name not in by_rows)
    if not good and risk.ATTACKERS[attacker].of_people:
        remedies = (Remedy("make one row of each unit", None, "no price: the table changes"),)
    if threshold is not None and prices is not None and largest(by_keys)[0] >= threshold:
        enough = smallest_k(threshold / prices.unit_rows)
        if enough > k:
            remedy = prices.of(f"k = {enough}", lambda few: prices.run_again(few, k=enough))
            remedies = (*remedies, replace(remedy, change=((("steps", "anonymize", "k"), enough),)))
    if not good and risk.ATTACKERS[attacker].of_other_columns:
        remedies = (*remedies, Remedy("see the line linkable columns"))
    return worst, CardLine("measured", PASSED if good else FAILED, says, remedies)


def smallest_k(threshold: float) -> int:
    """Return the smallest k with 1/k strictly below a threshold: 12 of 0.09."""
    k = max(2, math.floor(1 / threshold))
    while 1 / k >= threshold:
        k += 1
    return k


def _probability(value: float) -> str:
    return f"{100 * value:.2f}".rstrip("0").rstrip(".") + "%"


def _homogeneity(
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    anonymization: Anonymization | None,
    prices: Prices | None,
) -> CardLine:
    attacks = rows.get(risk.Homogeneity.name, ())
    if not attacks:
        if anonymization is not None and not anonymization.table.sensitive:
            return CardLine("homogeneity", NOT_MEASURED, "No column has the role sensitive.")
        return CardLine("homogeneity", NOT_MEASURED, "The attacker homogeneity was not tried.")
    bad = [row for row in attacks if row["at_risk"]]
    says = " ".join(str(row["sentence"]) for row in bad or attacks)
    if not bad:
        return CardLine("homogeneity", PASSED, says)
    remedies: list[Remedy] = []
    if prices is not None:
        ways: Sequence[tuple[str, dict[str, Any]]] = (
            ("p = 2", {"criterion": "p-sensitivity", "p": 2}),
            ("l = 2", {"criterion": "l-diversity", "l": 2.0}),
        )
        remedies = [prices.diverse(sentence, settings) for sentence, settings in ways]
    return CardLine("homogeneity", FAILED, says, tuple(remedies))


def _insider(context: risk.AttackContext | None, seed: int, prices: Prices | None) -> CardLine:
    fresh = None if context is None else insiders_draw(context, seed)
    if context is None or fresh is None:
        return CardLine(
            "insider", NOT_MEASURED,
            "This line needs a fresh draw from matches in memory, and there are none, or too many; anonflow.attack uses "
            "the true rows, for the owner.",
        )  # fmt: skip
    attack = risk.Insider(1).attack(fresh)
    says = f"By a fresh draw: {attack.sentence[0].lower()}{attack.sentence[1:]}"
    if not attack.at_risk:
        return CardLine("insider", PASSED, says)
    says += f" {attack.at_risk:,} of {attack.targets:,} {verb_of(attack.at_risk, 'are')} found more often than once in {max(1, context.k - 1)}."
    remedies = []
    if prices is not None and prices.heterogeneous:
        remedy = prices.of("classes by k-member", lambda few: prices.run_again(few, "k-member"))
        method = {"algorithm": "k-member", "k": context.k}
        remedies.append(replace(remedy, change=((("steps", "anonymize"), method),)))
    return CardLine("insider", FAILED, says, tuple(remedies))


def insiders_draw(context: risk.AttackContext, seed: int) -> risk.AttackContext | None:
    """Return the fresh draw from the same matches that the insider is judged by, here and beside the card; None without one."""
    if not _lists_are_short(context) or context.listing is None:
        return None
    return context.without_truth(np.random.default_rng(derived_seed(seed, "insider")))


def _lists_are_short(context: risk.AttackContext) -> bool:
    """Return whether the pairs of a person and a row can be written out: not where classes are very large."""
    proof = context.certificate
    return hasattr(proof, "candidates") and int(proof.candidates.sizes.sum()) <= PAIRS


def _linkable(
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    anonymization: Anonymization | None,
    threshold: float | None,
    exposed: Mapping[str, str],
) -> CardLine:
    attacks = rows.get(risk.LinkableColumns.name, ())
    others = () if anonymization is None else anonymization.table.other_columns
    dependent, verdict = False, NOT_MEASURED
    says = "The attacker linkable-columns was not tried."
    if attacks:
        worst = max(float(row["worst"]) for row in attacks)
        at_risk = max(int(row["at_risk"]) for row in attacks)
        says = f"{attacks[0]['sentence']} Of the most exposed row the attacker is {_probability(worst)} sure."
        dependent = worst >= threshold if threshold is not None else at_risk > 0
        verdict = PASSED
    elif anonymization is not None and not others:
        says, verdict = "Nothing but quasi-identifiers is published.", PASSED
    if not dependent and not exposed:
        return CardLine("linkable columns", verdict, says)
    open_columns = "".join(
        f"Column {name} is published in the open: {why}. " for name, why in exposed.items()
    )
    revealing = max(attacks, key=lambda row: float(row["worst"])).get("columns") if dependent else None
    names = dict.fromkeys([*exposed, *(revealing[:2] if isinstance(revealing, list) else ())])
    remedies = [
        Remedy(
            f"leave out the column {name}", None, "the GCP stays; that column is lost",
            ((("table", "columns", name), {"role": "identifier"}),),
        )
        for name in names
    ]  # fmt: skip
    if names:
        changes = () if anonymization is None else tuple(_as_keys(anonymization.table, names))
        remedies.append(
            Remedy(
                f"make {' and '.join(names)} {'a quasi-identifier' if len(names) == 1 else 'quasi-identifiers'}",
                None,
                "no price: the GCP would be over other columns",
                changes,
            )
        )
    return CardLine("linkable columns", FAILED, open_columns + says, tuple(remedies))


def _as_keys(table: Table, names: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in names:
        kind = "numeric" if table.frame[name].dtype.kind in "iuf" else "categorical"
        yield ("table", "columns", name), {"role": "quasi-identifier", "kind": kind}


class Prices:
    """The prices of remedies: the method is run again, with and without them, on the same records.

    Parameters
    ----------
    anonymization : Anonymization
    seed : int
    tried : bool
        Whether remedies are tried: otherwise they have no price.
    """

    def __init__(self, anonymization: Anonymization, seed: int, tried: bool = True) -> None:
        self._anonymization = anonymization
        self._tried = tried
        self._seed = derived_seed(seed, "prices")
        self._few: Anonymization | None = None

    @property
    def unit_rows(self) -> int:
        """The most rows of a person."""
        return self._anonymization.table.unit_rows

    @property
    def heterogeneous(self) -> bool:
        """Whether the method makes matches, not classes."""
        return self._anonymization.matches is not None

    def run_again(self, few: Table, algorithm: str | None = None, k: int | None = None) -> Anonymization:
        """Return the same run on some records, by another method or with another k."""
        return same_way(self._anonymization, few, self._seed, algorithm, k)

    def diverse(self, sentence: str, settings: Mapping[str, Any]) -> Remedy:
        """Return the price of a diversity of every sensitive column."""

        def run(few: Table) -> Anonymization:
            result = self.run_again(few)
            for name in few.sensitive:
                result = diversify(result, column=name, seed=self._seed, **settings)
            return result

        table = self._anonymization.table
        try:
            for name in table.sensitive:
                check_diversity(
                    table,
                    settings["criterion"],
                    name,
                    **{key: value for key, value in settings.items() if key != "criterion"},
                )
        except InfeasibleError as error:
            return Remedy(sentence, None, f"not possible: {error.message}")
        remedy = self.of(sentence, run)
        # a flow has one step diversify, of one column
        if (count := len(table.sensitive)) > 1:
            scope = f"on each of the {count} sensitive columns; a flow makes one of them diverse"
            return replace(remedy, note="; ".join(filter(None, (remedy.note, scope))))
        alone = remedy.price is not None or not self._tried
        return replace(remedy, change=((("steps", "diversify"), dict(settings)),) if alone else ())

    def of(self, sentence: str, run: Callable[[Table], Anonymization]) -> Remedy:
        """Return a remedy with its price, if remedies are tried; or why it has none."""
        if not self._tried:
            return Remedy(sentence)
        few = sample_of(self._anonymization, self._seed, SAMPLE, ENOUGH)
        if few is None:
            return Remedy(sentence, None, "no price: one partition has more than 5,000 records")
        note = "" if few.n == self._anonymization.n else f"on {few.n:,} records"
        try:
            if self._few is None:
                # with the same seed as the remedy, also if the sample has all records
                self._few = self.run_again(few)
            price = run(few).loss("ncp") - self._few.loss("ncp")
        except InfeasibleError as error:
            return Remedy(sentence, None, f"not possible: {error.message}")
        except ParameterError:
            return Remedy(sentence, None, "no price: the method has no such option")
        except DataError:
            return Remedy(sentence, None, "no price: these records cannot be released in this way")
        return Remedy(sentence, price, note)


def sample_of(anonymization: Anonymization, seed: int, most: int, enough: int | None = None) -> Table | None:
    """Return some records of an anonymization: all, or complete partitions; None if one partition is too large.

    Parameters
    ----------
    anonymization : Anonymization
    seed : int
    most : int
        Records.
    enough : int, optional
        Records after which no further partition is added; `most` without it.

    Returns
    -------
    Table or None
    """
    table = anonymization.table
    if table.n <= most:
        return table
    parts = [part for part in anonymization.partitions or () if len(part) <= most]
    if not parts:
        return None
    chosen: list[np.ndarray] = []
    for p in np.random.default_rng(seed).permutation(len(parts)).tolist():
        records = sum(map(len, chosen))
        if records >= (enough or most) or records + len(parts[p]) > most:
            break
        chosen.append(parts[p])
    return table.take(np.sort(np.concatenate(chosen)))


def same_way(
    anonymization: Anonymization, table: Table, seed: int, algorithm: str | None = None, k: int | None = None
) -> Anonymization:
    """Anonymize another table in the same way; another method keeps the diversity but not the options.

    Parameters
    ----------
    anonymization : Anonymization
    table : Table
    seed : int
    algorithm : str, optional
    k : int, optional

    Raises
    ------
    InfeasibleError
        If there is no release with this k or diversity.
    ParameterError
        If the method does not have an option.
    """
    apart = ("budget", "diversify", "diversified")
    settings = {name: value for name, value in anonymization.parameters.items() if name not in apart}
    if algorithm is not None:
        settings = {
            name: settings[name]
            for name in ("loss", "order", "boundaries", "partition_size")
            if name in settings
        }
    settings.setdefault("partition_size", None)
    result = anonymize(
        table, algorithm or anonymization.algorithm.name, k or anonymization.k, seed=seed, **settings
    )
    for step in anonymization.parameters.get("diversified", ()):
        result = diversify(result, seed=seed, **step)
    return result
