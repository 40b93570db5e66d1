"""The flow format: one frozen model for each part of a flow file.

The columns of the table are not declared here: :class:`anonflow.table.Schema` checks them itself.
"""

from __future__ import annotations

import unicodedata
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    create_model,
)
from pydantic_core import PydanticCustomError

from anonflow import datasets
from anonflow.algorithms import REGISTRY, Algorithm
from anonflow.algorithms.budget import AUTO, first_method
from anonflow.algorithms.diversity.target import DIVERSITIES, PARAMETERS, PRICE
from anonflow.engine.duration import DURATION, seconds_of
from anonflow.engine.flows.addresses import normalized
from anonflow.loss import names as losses
from anonflow.option import Option
from anonflow.partition import MOST_RECORDS
from anonflow.risk.attacker import THRESHOLD
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.files.csv_reading import DELIMITER, is_csv
from anonflow.table.files.statistics_files import READERS
from anonflow.table.files.workbooks import ENDINGS as WORKBOOKS
from anonflow.table.per_unit import Recipe

VERSION: Literal[1] = 1
"""The version of the flow format that this package reads."""

SCHEDULER = (
    r"^(threads|processes|(tcp|tls|ws|wss)://(\[[0-9A-Fa-f:.]+(%[0-9A-Za-z._-]+)?\]|[^\s/:\[\]]+):\d{1,5}/?)$"
)

MEMORY = r"^\d{1,6}(\.\d{1,3})?[KMGT]i?B$"

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


def flow_name(name: str) -> str:
    """Return the name of a flow for a table or file with this name."""
    plain = unicodedata.normalize("NFKD", name)
    letters = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-"
        for letter in plain
        if not unicodedata.combining(letter)
    )
    return letters.strip("._-")[:64] or "table"


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _pieces(value: Any) -> Any:
    """Return one problem for each wrong value, where a union of types would make several."""
    if value is not None and (not isinstance(value, int) or (not isinstance(value, bool) and value < 2)):
        raise PydanticCustomError("pieces", "true, false, or a number of rows of at least 2")
    return value


_AtLeastTwo = Annotated[int, Field(ge=2)]

File = Annotated[StrictStr, AfterValidator(normalized)]
"""A path relative to the flow file, or an address."""

FILES = ("csv", "parquet", "stats", "excel", "database")
"""Keys of a source that name a file."""

FORMS = ("csv", "parquet", "stats", "excel", "sql", "dataset")
"""Keys of a source of which it has one."""


def form_of(file: str | PathLike[str]) -> str:
    """Return the key of a source for a file with this ending; of an unknown ending that of Parquet, whose files may be a folder."""
    if is_csv(file):
        return "csv"
    ending = Path(file).suffix.lower()
    return "stats" if ending in READERS else "excel" if ending in WORKBOOKS else "parquet"


class SourceSpec(_Spec):
    """Where the table comes from: exactly one of `csv`, `parquet`, `stats`, `excel`, `sql` and `dataset`.

    Files are named relative to the flow file, or by an address such as s3://bucket/people.parquet.
    """

    csv: File | None = None
    """A CSV file with a header, relative to the flow file."""

    parquet: File | None = None
    """A Parquet file, or a folder of Parquet files, relative to the flow file."""

    stats: File | None = None
    """A file of SPSS (.sav, .zsav, .por), Stata (.dta) or SAS (.sas7bdat, .xpt), relative to the flow file."""

    excel: File | None = None
    """An Excel workbook (.xlsx), relative to the flow file; the first row of the sheet is the header, below those that `skip` counts."""

    sql: StrictStr | None = None
    """One SELECT, asked of `database`."""

    database: File | None = None
    """Of sql: a DuckDB file, relative to the flow file. It is opened to be read only, and the query reaches nothing else."""

    sheet: StrictStr | None = None
    """Of an Excel workbook: the name of the sheet; the first one without it."""

    labels: StrictBool = True
    """Of a stats file: whether a column whose values all have labels becomes its labels."""

    codes: Literal["missing", "values"] = "missing"
    """Of a stats file: what the codes are that it declares to be missing."""

    dataset: Annotated[StrictStr, Field(json_schema_extra={"enum": list(datasets.names())})] | None = None
    """The name of a built-in or fetched table (`anonflow datasets`)."""

    delimiter: Annotated[StrictStr, Field(pattern=DELIMITER)] = ","
    """Of a CSV file: one character of ASCII: a space, a tab, or a visible one that is no quote; `auto` finds it out."""

    encoding: StrictStr = "utf-8"
    """Of a CSV file; `auto` finds it out."""

    missing: tuple[StrictStr, ...] = ()
    """Texts that stand for a missing value in a CSV file, besides the empty cell."""

    header: StrictBool | None = None
    """Of a CSV file: whether its first row has the names of the columns. Without it, a first row that looks like a record is refused."""

    names: tuple[StrictStr, ...] = ()
    """Of a CSV file without a header: the names of its columns; `column 1`, `column 2` ... without them."""

    skip: Annotated[StrictInt, Field(ge=0)] = 0
    """Of a CSV file or a workbook: the number of lines above its header, such as titles."""

    comment: Annotated[StrictStr, Field(min_length=1)] | None = None
    """Of a CSV file: lines that begin so are not read."""

    index: Annotated[StrictStr, Field(min_length=1)] | None = None
    """Of a CSV file whose first column has no name: `drop` leaves that column out, another text is its name."""

    footer: Annotated[StrictInt, Field(ge=0)] | None = None
    """Of a CSV file or a workbook: the number of rows at its end that are not read. Without it, a last row that looks like a total is refused."""

    decimal: Literal[".", ","] | None = None
    """Of a CSV file: what stands before the fraction in columns of kind numeric and weights that do not say so themselves."""

    thousands: Literal[",", ".", " ", "'"] | None = None
    """Of a CSV file: what may stand between thousands in these columns; a space is also a no-break one."""

    part: StrictStr | None = None
    """Of a data set that has parts (adult: train, test, all)."""

    complete: StrictBool | None = None
    """Of a data set: only the rows without a missing value."""

    n: Annotated[StrictInt, Field(ge=1)] | None = None
    """Of a generated data set: the number of records."""

    q: Annotated[StrictInt, Field(ge=1)] | None = None
    """Of a generated data set: the number of columns."""

    sd: Annotated[float, Field(gt=0)] | None = None
    """Of random_normal: the standard deviation."""

    seed: Annotated[StrictInt, Field(ge=0)] | None = None
    """Of a generated data set: what it is generated from (no secret: nothing of a person is in it)."""

    @property
    def form(self) -> str | None:
        """The key that says what the source is; None of a table in memory."""
        return next((key for key in FORMS if getattr(self, key) is not None), None)

    @property
    def csv_form(self) -> dict[str, Any]:
        """How a CSV file is read: the arguments of :func:`anonflow.table.files.csv_reading.read_csv`."""
        return {
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "missing": self.missing,
            "shape": CsvShape.of(self.model_dump()),
        }

    @property
    def file(self) -> str | None:
        """The file that is read, as the flow names it; None of a data set."""
        return next((text for key in FILES if (text := getattr(self, key)) is not None), None)

    pieces: Annotated[
        bool | int | None, PlainValidator(_pieces, json_schema_input_type=bool | _AtLeastTwo | None)
    ] = None
    """True to work on the table in pieces on disk, or how many rows a piece has; false never to.

    Without it, a file that would take more memory than there is, is worked on in pieces.
    """


class UnitsSpec(_Spec):
    """What is done with the source's rows where people have several, before anything else."""

    unit: StrictStr
    """The column that says whose a row is."""

    cap: Annotated[StrictInt, Field(ge=1)] | None = None
    """Rows of a unit that are kept, drawn at random."""

    recipes: dict[str, Recipe] | None = None
    """One row per unit: column -> first, last, min, max, mean, median, sum, count, distinct, common, all or same."""

    rows: StrictStr | None = None
    """With recipes: a new column with the number of rows of each unit."""


class TableSpec(_Spec):
    """The table and what its columns are."""

    source: SourceSpec

    units: UnitsSpec | None = None
    """Of people with several rows: at most some of them, or one row per unit."""

    prepare: tuple[dict[str, Any], ...] = ()
    """Coding steps that come before, each a name with its column and options; the columns are those after them."""

    columns: dict[str, Any]
    """Column name -> {role, kind, ...}; handed to the schema as it is."""


def _partition_size(value: Any) -> Any:
    """Return one problem for each wrong value, where a union of types would make several."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise PydanticCustomError("partition_size", "a whole number, or auto")
    if value < 2:
        raise PydanticCustomError("greater_than_equal", "at least 2", {"ge": 2})
    return min(value, MOST_RECORDS)


class PartitionSpec(_Spec):
    """How the table is cut into partitions; without it, it is not cut."""

    order: Literal["lexicographic", "input", "random"] = "lexicographic"
    """What partitions are cut along."""

    size: Annotated[
        int | Literal["auto"] | None,
        PlainValidator(_partition_size, json_schema_input_type=_AtLeastTwo | Literal["auto"] | None),
    ] = None
    """Records in a partition; the whole table without it; ``auto`` is the largest that fits the budget."""

    budget: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] | None = None
    """With ``size: auto``: seconds that the method may take, found by timing it on a few partitions; partitions and
    effort are what fits."""

    @property
    def cut(self) -> int | None:
        """The size as a number; None for the whole table, also before ``auto`` is one."""
        return self.size if isinstance(self.size, int) else None


class RunSpec(_Spec):
    """What the flow runs on; the result does not depend on it."""

    scheduler: Annotated[StrictStr, Field(pattern=SCHEDULER)] = "threads"
    """threads, processes, or the address of a running Dask scheduler: tcp://HOST:PORT."""

    workers: Annotated[StrictInt, Field(ge=1, le=1024)] | None = None
    """Threads or processes; as many as there are processors without it."""

    memory: Annotated[StrictStr, Field(pattern=MEMORY)] | None = None
    """What each worker may use, such as 4GiB: a process that uses more is ended; a table that would take
    more is worked on in pieces."""

    wait: Annotated[StrictStr, Field(pattern=DURATION)] = "5m"
    """How long a cluster without any worker is waited for, such as 30s, 5m or 12h."""

    @property
    def wait_seconds(self) -> float:
        """The wait as a number of seconds."""
        return seconds_of(self.wait)

    @property
    def memory_bytes(self) -> int | None:
        """The memory as a number of bytes."""
        if self.memory is None:
            return None
        number = self.memory.rstrip("KMGTiB")
        unit = self.memory[len(number) :]
        return int(float(number) * (1024 if "i" in unit else 1000) ** (1 + "KMGT".index(unit[0])))


class AnonymizeSpec(BaseModel):
    """The method and its parameters; what is not declared here is an option of the method."""

    model_config = ConfigDict(extra="allow", frozen=True)

    algorithm: Annotated[StrictStr, Field(json_schema_extra={"enum": [*REGISTRY, AUTO]})]
    """A name of the registry (`anonflow algorithms`), or auto: the one that loses least in the budget."""

    k: Annotated[StrictInt, Field(ge=2)]
    """Among how many records each one hides."""

    loss: Annotated[StrictStr, Field(json_schema_extra={"enum": list(losses())})] = "ncp"
    """The information loss to keep low."""

    boundaries: StrictBool = True
    """Whether the method works inside the schema's boundaries."""

    guarantee: Literal["k-regular", "k-anonymity"] | None = None
    """Of the method auto: what it is to guarantee."""

    budget: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] | None = None
    """Seconds that the method may take: auto takes the method of least loss, others as much effort as fits."""

    @property
    def method(self) -> Algorithm:
        """The method of the registry; for auto, the method that it tries first."""
        if self.algorithm == AUTO:
            return first_method(self.guarantee)
        return REGISTRY[self.algorithm].under(self.options)

    @property
    def options(self) -> dict[str, Any]:
        """The method's own options."""
        return dict(self.__pydantic_extra__ or {})


def _parameter(option: Option) -> tuple[Any, Any]:
    """Return the type and the field of a criterion's parameter, which may be left out."""
    bounds = {"ge": option.least, "le": option.most, "gt": option.above, "lt": option.below}
    number: Any = StrictInt if option.whole else Annotated[float, Field(allow_inf_nan=False, strict=True)]
    kind = Annotated[number, Field(**{word: bound for word, bound in bounds.items() if bound is not None})]
    return kind | None, Field(default=None, description=option.sentence or option.label)


_fields: dict[str, Any] = {name: _parameter(option) for name, option in PARAMETERS.items()}
_Parameters: Any = create_model("_Parameters", __base__=_Spec, **_fields)


class DiversifySpec(_Parameters):
    """Making the values on the rows that may be a person's diverse, before the draw and inside partitions."""

    criterion: StrictStr = Field(description=f"One of {', '.join(DIVERSITIES)}. {PRICE}")

    column: StrictStr | None = None
    """The sensitive column; the only one without it."""

    w: Annotated[float, Field(ge=0, le=1, strict=True)] = 0.15
    """Has no effect: weighing losses by sensitive values would tell them."""

    risk: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.01
    """Of the way blind: the chance that the draw fails the criterion and is refused."""

    way: Literal["classes", "blind"] = "classes"
    """Of k-regular methods: all records become classes, or every record gets more matches, whatever its value."""

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of :func:`anonflow.algorithms.diversity.diversify` besides the criterion."""
        return {name: getattr(self, name) for name in ("column", *PARAMETERS, "w", "risk", "way")}

    @property
    def needed(self) -> dict[str, float]:
        """The parameters of the criterion."""
        values = {name: getattr(self, name) for name in PARAMETERS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def request(self) -> dict[str, dict[str, Any]]:
        """The criterion as a release is verified by it."""
        return {self.criterion: {**self.needed, **({} if self.column is None else {"column": self.column})}}


class DrawSpec(_Spec):
    """Drawing the assignment; it has no options."""


class StepsSpec(_Spec):
    """The steps of a flow by name, in the order in which they are taken."""

    anonymize: AnonymizeSpec
    diversify: DiversifySpec | None = None
    """Diversity of what the rows that may be a person's show; between anonymize and draw."""

    draw: DrawSpec | None = None
    verify: tuple[StrictStr | dict[str, Any], ...] = ()
    """Criteria; `guarantee` is what the algorithm promises."""

    attack: tuple[StrictStr | dict[str, Any], ...] = ()
    """Attackers that the release is tried against (`prosecutor`, `linker`, `insider: {c: 2}`, ...)."""

    measure: tuple[StrictStr | dict[str, Any], ...] = ()
    """Measures (`gcp`, `usefulness`, `regression: {formula: income ~ age}`, ...)."""

    @property
    def measures(self) -> dict[str, dict[str, Any]]:
        """Name -> its options, of the measures asked for."""
        measures: dict[str, dict[str, Any]] = {}
        for entry in self.measure:
            measures |= (
                {entry: {}}
                if isinstance(entry, str)
                else {name: dict(options or {}) for name, options in entry.items()}
            )
        return measures


def _report(value: Any) -> Any:
    """Return the report's settings, a name alone as a report in the usual form, and a problem for each wrong value."""
    if value is None or isinstance(value, dict | ReportSpec):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("report", "a file name, or a mapping")
    return {"file": value}


class ReportSpec(_Spec):
    """The report of a run; its file name alone is the usual form."""

    file: File = "out/report.html"
    """The page: an .html file."""

    template: Literal["plain", "ema"] = "plain"
    """ema: for a reviewer, modelled on the anonymization report of EMA's Policy 0070 and of Health Canada."""

    threshold: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False, strict=True)] | None = None
    """What the largest probability of any person over all attackers, linkable columns included, must be smaller than: else the run
    fails. Without it the card of ema is judged by 0.09, and the run does not fail."""

    pdf: File | None = None
    """The same page as a .pdf file, printed by Chromium or Chrome of this machine."""

    @property
    def limit(self) -> float | None:
        """The threshold that the release card is judged by."""
        return THRESHOLD if self.threshold is None and self.template == "ema" else self.threshold


class PublishSpec(_Spec):
    """What is written where, relative to the flow file."""

    table: File | None = None
    """The release: a .csv or .parquet file, one of SPSS (.sav, .zsav) or Stata (.dta), or a folder of Parquet files, whose
    name ends in .parquet/."""

    report: Annotated[ReportSpec | None, BeforeValidator(_report)] = None
    """The report: an .html file, or a mapping of file, template, threshold and pdf."""

    run: dict[str, Any] | None = None
    """With a matrix: which of its runs is published, as a value for each of its keys."""


Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False, strict=True)]


class TriedSpec(_Spec):
    """A candidate that a search has run, and what came of it."""

    algorithm: StrictStr
    k: Annotated[StrictInt, Field(ge=2)]
    size: Annotated[StrictInt, Field(ge=2)] | None = None
    """Records in a partition; the whole table without it."""

    options: dict[str, Any] = {}
    """Of the method."""

    diversify: dict[str, Any] = {}
    """Settings of the step diversify."""

    loss: float | None = None
    """The GCP that was measured."""

    risk: float | None = None
    """The largest probability of any person's row that was measured."""

    disclosure: float | None = None
    """The largest probability of guessing a sensitive value of any person that was measured."""

    signs: StrictBool | None = None
    """Whether the regressions kept their signs; without it they were not looked at."""

    seconds: float | None = None
    """That it took; nothing depends on them any more."""

    expected: float | None = None
    """Seconds that were expected."""

    problem: StrictStr | None = None
    """Why there is no result."""

    picked: StrictBool = False
    """Whether the steps of the flow are its settings."""


class TargetSpec(_Spec):
    """What a release is to reach, in place of a method (`anonflow search`); with `tried`, what a search has picked."""

    loss: Share | None = None
    """The GCP at most."""

    risk: Share | None = None
    """The probability, at most, with which an attacker who knows all quasi-identifiers and the method points at a person's row."""

    disclosure: Share | None = None
    """The probability, at most, with which the same attacker guesses a sensitive value of any person."""

    signs: tuple[StrictStr, ...] = ()
    """Formulas of regressions whose coefficients keep their signs."""

    time: Annotated[StrictStr, Field(pattern=DURATION)] = "2m"
    """How long the search may take, such as 30s, 2m or 1h."""

    tried: tuple[TriedSpec, ...] = ()
    """What a search has tried, written by it; then the flow runs what was picked, and nothing is searched."""


class EarlierSpec(_Spec):
    """Earlier releases of the same people: all releases together leave everybody enough people whose rows may be theirs."""

    owner: Annotated[tuple[StrictStr, ...], Field(min_length=1)] = ("owner",)
    """The owner's folders in which they were kept, relative to the flow file, the oldest first."""

    people: Annotated[StrictInt, Field(ge=2)] | None = None
    """Of methods of classes: how many people's rows may be a person's, in all releases together; k without it."""


class FlowSpec(_Spec):
    """A whole flow."""

    flow: Annotated[StrictStr, Field(pattern=NAME_PATTERN)]
    """Its name: letters, digits, dots, dashes and underscores; the owner's folder is named after it."""

    version: Literal[1]
    """Of the format."""

    table: TableSpec
    partition: PartitionSpec = PartitionSpec()
    steps: StepsSpec
    matrix: dict[str, tuple[Any, ...]] | None = None
    """Parameter -> its values: one run for every combination."""

    target: TargetSpec | None = None
    """What is to be reached, in place of a method."""

    earlier: EarlierSpec | None = None
    """That people of the table were published before: they stay in their classes or components, and others are held back."""

    publish: PublishSpec = PublishSpec()
    run: RunSpec = RunSpec()
