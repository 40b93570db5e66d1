"""The form in which people write dates: the order of day, month and year, names of months, years of two digits, serial numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.hierarchy.wording import plural

_ORDERS = {"dmy": "the day before the month", "mdy": "the month before the day", "ymd": "the year first"}
_SERIALS = {"excel": "1899-12-30", "excel-1904": "1904-01-01"}
DATES = (*(sign.join(order) for order in _ORDERS for sign in "./-"), *_ORDERS, *_SERIALS)
"""What a schema may say under ``dates``: ``d.m.y``, ``m/d/y``, ``y-m-d`` ...; the signs in the cells may be others. ``ymd``, ``dmy`` and
``mdy`` have none, and eight digits."""

PIVOT = 30
"""An example of a first year."""

PARTIAL = re.compile(r"[0-9]{4}(?:-[0-9]{2})?")
"""A date without a day, or without a month, as it is read."""

_MONTHS = """
1 january jan januar jänner janner jän enero ene janvier janv gennaio gen janeiro januari januar tammikuu tammikuuta styczeń stycznia sty leden ledna led január ocak oca январь января янв ιανουάριος ιανουαρίου ιαν يناير
2 february feb februar feber febrero février fevrier févr fevr fév febbraio fevereiro fev februari helmikuu helmikuuta luty lutego lut únor února úno február şubat şub февраль февраля фев февр φεβρουάριος φεβρουαρίου φεβ فبراير
3 march mar märz mär mrz maerz marzo mars março marco maart mrt marts maaliskuu maaliskuuta marzec marca březen března bře március márc mart март марта мар μάρτιος μαρτίου μαρ μάρ مارس
4 april apr abril abr avril avr aprile huhtikuu huhtikuuta kwiecień kwietnia kwi duben dubna dub április ápr nisan nis апрель апреля апр απρίλιος απριλίου απρ أبريل ابريل
5 may mai mayo maggio mag maio mei maj toukokuu toukokuuta maja květen května kvě május máj mayıs may май мая μάιος μαΐου μαϊ مايو
6 june jun juni junio juin giugno giu junho kesäkuu kesäkuuta czerwiec czerwca cze červen června čvn június jún haziran haz июнь июня июн ιούνιος ιουνίου ιουν يونيو
7 july jul juli julio juillet juil luglio lug julho heinäkuu heinäkuuta lipiec lipca lip červenec července čvc július júl temmuz tem июль июля июл ιούλιος ιουλίου ιουλ يوليو
8 august aug agosto ago août aout augustus augusti elokuu elokuuta sierpień sierpnia sie srpen srpna srp augusztus ağustos ağu август августа авг αύγουστος αυγούστου αυγ أغسطس
9 september sept sep septiembre setiembre septembre settembre set setembro syyskuu syyskuuta wrzesień września wrz září zář szeptember szept eylül eyl сентябрь сентября сен сент σεπτέμβριος σεπτεμβρίου σεπ σεπτ سبتمبر
10 october oct oktober okt octubre octobre ottobre ott outubro out október lokakuu lokakuuta październik października paź říjen října říj ekim eki октябрь октября окт οκτώβριος οκτωβρίου οκτ أكتوبر
11 november nov noviembre novembre novembro marraskuu marraskuuta listopad listopada lis listopadu kasım kas ноябрь ноября ноя нояб νοέμβριος νοεμβρίου νοε نوفمبر
12 december dec dezember dez diciembre dic décembre decembre déc dicembre dezembro dez joulukuu joulukuuta grudzień grudnia gru prosinec prosince pro decembrio desember des aralık ara декабрь декабря дек δεκέμβριος δεκεμβρίου δεκ ديسمبر
"""
"""Month, and its names in the languages of :mod:`anonflow.table.identification.column_signs`."""


def _letters(text: str) -> str:
    """Return a name in small letters without marks on them, so that März, MÄRZ and Marz are equal."""
    parts = unicodedata.normalize("NFKD", text.lower().replace("ı", "i"))
    return "".join(letter for letter in parts if letter.isalpha())


_MONTH_OF = {
    _letters(name): int(line.split()[0]) for line in _MONTHS.strip().splitlines() for name in line.split()[1:]
}
_NAME = r"[\p{L}\p{M}]+\.?"  # a least length would repeat the letters of all languages, which take a millisecond to compile
_BETWEEN = (
    r"[ \t\x{00A0}]*[./\-‐‑][ \t\x{00A0}]*|[ \t\x{00A0}]+(?:de|del|of)[ \t\x{00A0}]+|[,]?[ \t\x{00A0}]+"
)
_ORDINAL = r"(?:st|nd|rd|th|er|re|º|ª)?"
_TIME = (
    r"(?:(?:[Tt]|[ \t\x{00A0}]*,?[ \t\x{00A0}]+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?P<part>[.,][0-9]{1,9})?)?"
    r"[ \t\x{00A0}]*(?P<half>[AaPp]\.?[Mm]\.?)?[ \t]*(?P<zone>[Zz]|UTC|GMT|[+\-][0-9]{2}:?[0-9]{2})?)?$"
)
_THREE = (
    rf"^(?P<a>[0-9]{{1,4}}){_ORDINAL}(?P<s>{_BETWEEN})(?P<b>[0-9]{{1,2}}|{_NAME})(?P<t>{_BETWEEN})(?P<c>[0-9]{{1,4}})\.?"
    + _TIME
)
_NAME_FIRST = (
    rf"^(?P<b>{_NAME})[ \t\x{{00A0}}\-]+(?P<a>[0-9]{{1,2}}){_ORDINAL},?[ \t\x{{00A0}}\-]+(?P<c>[0-9]{{2,4}})"
    + _TIME
)
_TIGHT = rf"^(?P<a>[0-9]{{1,2}})(?P<b>{_NAME})(?P<c>[0-9]{{2}}|[0-9]{{4}})" + _TIME.replace("[Tt]", "[Tt:]")
"""As SAS writes them: 18MAY1944, 18MAY1944:13:45:00."""
_MONTH_FIRST = (
    rf"^(?P<b>[0-9]{{1,2}})(?P<s>{_BETWEEN})(?P<a>[0-9]{{1,2}})(?P<t>{_BETWEEN})(?P<c>[0-9]{{1,4}})" + _TIME
)
_EAST = r"^(?P<a>[0-9]{4})[年년] ?(?P<b>[0-9]{1,2})[月월] ?(?P<c>[0-9]{1,2})[日일]" + _TIME
_ONLY_YEAR = r"^(?P<c>[0-9]{4})$"
_MONTH_YEAR = rf"^(?P<b>[0-9]{{1,2}}|{_NAME})(?:[./\-]|[ \t]+(?:de |of )?)(?P<c>[0-9]{{4}})$"
_DIGITS = {
    letter: f"(?P<{group}>[0-9]{{{size}}})"
    for letter, group, size in (("y", "c", 4), ("m", "b", 2), ("d", "a", 2))
}
"""Parts of dates without signs."""
_FIRST_YEAR, _LAST_YEAR = 1800, 2199
"""Years of eight digits that are taken for dates unless the schema says so."""
_YEAR_MONTH = r"^(?P<c>[0-9]{4})[./\-](?P<b>[0-9]{1,2})$"

_BEGINNINGS = {
    _YEAR_MONTH: r"[0-9]{4}[./\-][0-9]{1,2}$",
    _ONLY_YEAR: r"[0-9]{4}$",
    _MONTH_YEAR: r"(?:[0-9]{1,2}|[^\d\s/\-]+)(?:[./\-]|[ \t]+(?:de |of )?)[0-9]{4}$",
    _EAST: r"[0-9]{4}[年년]",
    _NAME_FIRST: r"[^\d\s/\-]+[ \t\u00a0\-]+[0-9]",
    _TIGHT: r"[0-9]{1,2}[^\d\s/\-]+[0-9]{2}",
    _THREE: rf"[0-9]{{1,4}}{_ORDINAL}[\s./\-‐‑,](?:[^0-9]*+[0-9]{{1,2}}[^0-9]++|(?=[^0-9]*?[^\W\d_])[^0-9]*+)[0-9]",
    _MONTH_FIRST: r"[0-9]{1,2}[^0-9]++[0-9]{1,2}[^0-9]++[0-9]",
}
_MAY_FIT = {pattern: re.compile(beginning) for pattern, beginning in _BEGINNINGS.items()}
"""How every text begins that a pattern fits, told in one pass over the text. Where no text does the pattern is not tried: Arrow takes a millisecond
or two to compile it, each time."""

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(.*)")
_LAST_DAY = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@dataclass(frozen=True)
class DateForm:
    """How the dates of a column are written.

    Attributes
    ----------
    dates : str
        One of `DATES`: the order of day, month and year, whatever stands between them, or without signs, in eight digits; or the serial
        numbers of a spreadsheet. A month may be a name.
    pivot : int or None
        The first year that two digits can mean: `1930`, or 30 for short, takes 30 for `1930` and 29 for `2029`. None refuses them.
    """

    dates: str
    pivot: int | None = None

    kind: ClassVar[str] = "dates"
    """What is written so."""

    @property
    def is_serial(self) -> bool:
        """Whether they are numbers."""
        return self.dates in _SERIALS

    @property
    def takes_numbers(self) -> bool:
        """Whether cells that are numbers are dates, too."""
        return self.is_serial or not self.sign

    @property
    def order(self) -> str:
        """The letters of day, month and year, none of serial numbers."""
        return "" if self.is_serial else "".join(filter(str.isalpha, self.dates))

    @property
    def sign(self) -> str:
        """What stands between them; nothing in eight digits."""
        return "" if self.dates == self.order else self.dates[1]

    @property
    def words(self) -> str:
        """The form in words."""
        if self.is_serial:
            return "serial numbers of a spreadsheet"
        return ("" if self.sign else "eight digits, ") + _ORDERS[self.order]

    def to_mapping(self) -> dict[str, Any]:
        """Return the keys of a schema's column."""
        return {"dates": self.dates} | ({} if self.pivot is None else {"pivot": self.pivot})

    @property
    def options(self) -> dict[str, Any]:
        """The options of the step that reads them."""
        return {"order": self.dates} | ({} if self.pivot is None else {"pivot": self.pivot})

    def read(self, texts: Sequence[str]) -> DateReading:
        """Return the ISO dates of texts, all at once.

        Parameters
        ----------
        texts : sequence of str
            Distinct values.
        """
        if self.is_serial:
            return self._serials(texts)
        read = DateReading(np.full(len(texts), None, object), np.zeros(len(texts), bool))
        cells = pc.utf8_trim_whitespace(pa.array(texts, pa.string()))
        order = self.order
        if not self.sign:
            cells = pc.utf8_lpad(cells, 8, "0")  # a number has lost its zero in front
            for unknown in ("md", "d", ""):  # registers write 00 for a month or a day that is not known
                parts = ("00" if letter in unknown else _DIGITS[letter] for letter in order)
                self._match(cells, f"^{''.join(parts)}" + ("$" if unknown else _TIME), "", read)
            return read
        trimmed = np.array(cells.to_pylist(), object)
        for pattern, places in (
            (_YEAR_MONTH, ""),
            (_ONLY_YEAR, ""),
            (_MONTH_YEAR, ""),
            (_EAST, "ymd"),
            (_NAME_FIRST, "dmy"),
            (_TIGHT, "dmy"),
            (_MONTH_FIRST if order == "mdy" else _THREE, order if order == "ymd" else "dmy"),
            *(((_THREE, "name"),) if order == "mdy" else ()),
        ):
            if any(map(_MAY_FIT[pattern].match, trimmed[~read.good])):
                self._match(cells, pattern, places, read)
        return read

    def cell(self, plain: str) -> str:
        """Return an ISO date as a release writes it in this form."""
        day = _ISO.fullmatch(plain)
        if day is None:
            return plain
        parts = dict(zip("ymd", day.groups(), strict=False))
        return self.sign.join(parts[letter] for letter in self.order) + day[4].replace("T", " ")

    def _match(self, cells: pa.Array, pattern: str, places: str, read: DateReading) -> None:
        """Read the texts that a pattern fits, and that are not read yet."""
        parts = pc.extract_regex(cells, pattern)
        at = np.flatnonzero(np.asarray(parts.is_valid()) & ~read.good)
        if not len(at):
            return
        parts = parts.take(pa.array(at))
        names = {field.name for field in parts.type}

        def part(name: str) -> np.ndarray:
            return np.array(
                pc.struct_field(parts, name).to_pylist() if name in names else [""] * len(at), object
            )

        first, month_text, last = part("a"), part("b"), part("c")
        signs = [np.array([str(sign).strip(" \t\u00a0,") for sign in part(name)], object) for name in "st"]
        named = (
            np.array([not text.isdigit() for text in month_text], bool) if places or "b" in names else None
        )
        month = np.ones(len(at), np.int64)
        if "b" in names:
            month = np.array(
                [int(t) if t.isdigit() else _MONTH_OF.get(_letters(t), 0) for t in month_text], np.int64
            )
        year_text, day_text = (first, last) if places == "ymd" else (last, first)
        good = np.ones(len(at), bool)
        if places == "name":
            good &= np.asarray(named)
        if named is not None and "s" in names:
            # 1.2/2013 is no date; a name may follow a point and stand before a space
            good &= named | (signs[0] == signs[1])
        short = np.array([len(text) == 2 for text in year_text], bool)
        good &= short | np.array([len(text) == 4 for text in year_text], bool)
        good &= np.array([len(text) <= 2 for text in day_text], bool)
        year = np.array([int(text) for text in year_text], np.int64)
        if self.pivot is not None:
            pivot = self.pivot if self.pivot > 99 else 1900 + self.pivot
            century = year + pivot // 100 * 100
            year = np.where(short, np.where(century < pivot, century + 100, century), year)
        day = np.array([int(text or 1) for text in day_text], np.int64)
        open_year = short & (self.pivot is None)
        inside = (month >= 1) & (month <= 12) & ((year >= 1) | open_year) & (day >= 1)
        leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        # of a year that is not known every 29 February may be there
        inside &= day <= _LAST_DAY[np.clip(month, 0, 12)] - ((month == 2) & ~leap & ~open_year)
        good &= inside
        clock, is_time = _clock(part, "hour" in names)
        good &= is_time
        form = (
            "{0:04d}"
            if "b" not in names
            else "{0:04d}-{1:02d}"
            if "a" not in names
            else "{0:04d}-{1:02d}-{2:02d}"
        )
        for place in np.flatnonzero(good).tolist():
            if open_year[place]:
                read.short[at[place]] = True
            read.plain[at[place]] = form.format(year[place], month[place], day[place]) + clock[place]

    def _serials(self, texts: Sequence[str]) -> DateReading:
        """Return the dates of serial numbers; a fraction is the time, to the second."""
        cells = pc.utf8_trim_whitespace(pa.array(texts, pa.string()))
        good = np.asarray(pc.match_substring_regex(cells, r"^[0-9]{1,7}(?:\.[0-9]*)?$"))
        days = np.array(
            [float(text) if fits else 0.0 for text, fits in zip(cells.to_pylist(), good, strict=True)]
        )
        good = good & (days >= (1 if self.dates == "excel" else 0)) & (days < 2_958_466)
        # Excel counts a 29 February in `1900`, which was no day
        shift = np.where((self.dates == "excel") & (days < 60), 1, 0)
        good &= ~((self.dates == "excel") & (np.floor(days) == 60))
        whole = np.floor(days).astype(np.int64)
        seconds = np.rint((days - whole) * 86_400).astype("timedelta64[s]")
        moments = (
            np.datetime64(_SERIALS[self.dates], "s") + (whole + shift).astype("timedelta64[D]") + seconds
        )
        iso = np.datetime_as_string(moments, unit="s").astype(object)
        iso[:] = [text.removesuffix("T00:00:00") for text in iso]
        iso[~good] = None
        return DateReading(iso, np.zeros(len(texts), bool))


def _clock(part: Any, timed: bool) -> tuple[list[str], np.ndarray]:
    """Return the time of each, as ISO writes it after a date, and which exist."""
    columns = [part(name) for name in ("hour", "minute", "second", "part", "half", "zone")] if timed else []
    if not timed:
        size = len(part("c"))
        return [""] * size, np.ones(size, bool)
    texts, good = [], []
    for hour, minute, second, fraction, half, zone in zip(*columns, strict=True):
        if not hour:
            texts.append("")
            good.append(True)
            continue
        number = int(hour)
        if half:
            good_hour = 1 <= number <= 12
            number = number % 12 + (12 if half[0] in "Pp" else 0)
        else:
            good_hour = number <= 23
        offset = "" if not zone else "Z" if zone in ("Z", "z", "UTC", "GMT") else zone.replace(":", "")
        if len(offset) == 5:
            good_hour = good_hour and int(offset[1:3]) <= 23 and int(offset[3:]) <= 59
            offset = f"{offset[:3]}:{offset[3:]}"
        good.append(good_hour and int(minute) <= 59 and int(second or 0) <= 59)
        tail = f":{second}{fraction.replace(',', '.')}" if second else ":00"
        texts.append(f"T{number:02d}:{minute}{tail}{offset}")
    return texts, np.array(good, bool)


@dataclass(frozen=True)
class DateReading:
    """The dates of distinct texts.

    Attributes
    ----------
    plain : numpy.ndarray, shape (u,), object
        Each as ISO 8601 writes it, a partial one as ``1984`` or ``1984-07``; None where a text is no date of the form.
    short : numpy.ndarray, shape (u,), bool
        Which have a year of two digits that no pivot explains; their ISO text has the year as it is.
    """

    plain: np.ndarray
    short: np.ndarray

    @property
    def good(self) -> np.ndarray:
        """Which texts are dates of the form, shape (u,), bool."""
        return np.array([text is not None for text in self.plain.tolist()], bool)

    @property
    def partial(self) -> np.ndarray:
        """Which are a year, or a year and a month, shape (u,), bool."""
        return np.array([text is not None and bool(PARTIAL.fullmatch(text)) for text in self.plain], bool)

    def problem(self, counts: np.ndarray) -> str | None:
        """Return what forbids to take these for the dates of one column, in words without a value; None if nothing does.

        Parameters
        ----------
        counts : numpy.ndarray, shape (u,), int64
            How often each text occurs.
        """
        zoned = {
            text[-1] == "Z" or text[-6] in "+-" for text in self.plain[self.good].tolist() if "T" in text
        }
        if len(zoned) > 1:
            return "has dates with and without a time zone; write them all in one way"
        if not self.short.any():
            return None
        return (
            f"has {plural(int(counts[self.short].sum()), 'date')} with a year of two digits; say the first year that two digits can "
            f"mean, such as pivot: {PIVOT}"
        )


def date_forms(texts: Sequence[str]) -> list[DateForm]:
    """Return the forms in which texts can be read as dates, one for each reading.

    Parameters
    ----------
    texts : sequence of str
        All distinct values of a column.

    Returns
    -------
    list of DateForm
        Empty if they are not dates; several if the same texts are other dates in each, such as those of which no day is above 12.
        Years alone are numbers. No form has a pivot.
    """
    forms: list[DateForm] = []
    readings: list[list[str]] = []
    named = all(text.lstrip()[:1].isalpha() for text in texts)  # May 18, 1944 has the month before the day
    digits = are_digits(texts)
    if not digits and not all(map(may_be_date, texts)):
        return []
    for order in ("mdy", "dmy", "ymd") if named else _ORDERS:
        form = DateForm(order if digits else "/".join(order))
        for part in (texts[:1000], texts):
            reading = form.read(part)
            if not reading.good.all():
                break
        else:
            iso = reading.plain.tolist()
            if not reading.partial.all() and iso not in readings:
                forms.append(form)
                readings.append(iso)
    return forms


def may_be_date(text: str) -> bool:
    """Return whether a text begins as dates with signs do; one that does not is no date in any form with signs."""
    text = text.strip()
    return any(beginning.match(text) for beginning in _MAY_FIT.values())


def are_digits(texts: Sequence[str]) -> bool:
    """Return whether texts are eight digits, or seven behind a zero that is lost, that have the year of a date first, or last."""
    return all(
        len(text) in (7, 8)
        and text.isdecimal()
        and any(_FIRST_YEAR <= int(year) <= _LAST_YEAR for year in (text.zfill(8)[:4], text[-4:]))
        for text in texts
    )


def partial_ends(text: str) -> tuple[str, str]:
    """Return the first and the last day of a year or a month."""
    if len(text) == 4:
        return f"{text}-01-01", f"{text}-12-31"
    last = np.datetime64(text, "M") + 1
    return f"{text}-01", str(last.astype("datetime64[D]") - 1)
