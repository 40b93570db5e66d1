"""The errors of anonflow: one line each that a person can act on, and never a cell's value."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import NamedTuple

__all__ = [
    "AnonflowError",
    "AnonflowWarning",
    "DataError",
    "FlowError",
    "HierarchyError",
    "InfeasibleError",
    "ParameterError",
    "SchemaError",
    "VerificationError",
]

CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029"  # what a terminal takes for an order, and line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # what turns the direction of text around
)
"""Characters that no text may bring to a terminal: names of columns and files may hold any."""


class Setting(NamedTuple):
    """A setting that a sentence names.

    Attributes
    ----------
    name : str
        By which a door finds its own words for it.
    words : str
        Its words in flow files, the shell and Python.
    values : tuple of str
        What fills the ``{}`` in the words of another door.
    """

    name: str
    words: str
    values: tuple[str, ...]


class Sentence(str):
    """A text that names settings in the words of flow files, and can be had in the words of another door.

    It is made by adding texts to a :func:`setting`. A ``+`` keeps the settings, an f-string does not.

    Attributes
    ----------
    parts : tuple of str and Setting
        In their order.
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Sentence:
        sentence = super().__new__(
            cls, "".join(part.words if isinstance(part, Setting) else part for part in parts)
        )
        sentence.parts = parts
        return sentence

    def __reduce__(self) -> tuple[type[Sentence], tuple[str | Setting, ...]]:
        return Sentence, self.parts

    def __add__(self, other: str) -> Sentence:
        return Sentence(*self.parts, *(other.parts if isinstance(other, Sentence) else (other,)))

    def __radd__(self, other: str) -> Sentence:
        return Sentence(other, *self.parts)

    def in_words(self, words: Mapping[str, str]) -> str:
        """Return the sentence for a door with words of its own.

        Parameters
        ----------
        words : mapping of str to str
            Name of a setting -> its words, with ``{}`` for its values. Other settings keep theirs.
        """
        return "".join(
            part
            if isinstance(part, str)
            else words[part.name].format(*part.values)
            if part.name in words
            else part.words
            for part in self.parts
        )


def setting(name: str, words: str, *values: object) -> Sentence:
    """Return a :class:`Setting` as a sentence, to which texts are added."""
    return Sentence(Setting(name, printable(words), tuple(printable(str(value)) for value in values)))


def printable(text: str) -> str:
    """Return a text in one line, with escapes such as ``\\x1b`` where it holds :data:`CONTROLS`."""
    return _between_settings(text, lambda plain: CONTROLS.sub(lambda match: repr(match[0])[1:-1], plain))


LONG_WORD = re.compile(r"\S{1000,}")
"""A name or a path of so many characters is cut in an error."""


def _error_text(text: str) -> str:
    """Return a text of an error: printable, and no line of thousands of characters for one long word."""
    return _between_settings(
        printable(text), lambda plain: LONG_WORD.sub(lambda match: f"{match[0][:100]}...", plain)
    )


def _between_settings(text: str, change: Callable[[str], str]) -> str:
    if not isinstance(text, Sentence):
        return change(text)
    return Sentence(*(part if isinstance(part, Setting) else change(part) for part in text.parts))


SHOWN = 10
"""So many problems are said one by one; of more, how many there are."""


class Problem(NamedTuple):
    """One thing that is wrong, and what it is about.

    Attributes
    ----------
    path : tuple of str and int
        Keys of mappings and positions in lists, from the outside in, in what was read.
    text : str
        A line, without the place.
    """

    path: tuple[str | int, ...]
    text: str


class AnonflowError(Exception):
    """The base of every error that anonflow raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do, in one line.
    problems : sequence of str, optional
        All problems, one line each, where several were found at once.
    found : sequence of Problem, optional
        The same problems, each with the path to what it is about, where that is known.
    subject : str, optional
        The step, method or section that the message is about; the shown message begins with it, as the name of a setting.

    Attributes
    ----------
    message : str
        The message, with its subject.
    text : str
        The first problem without its subject, for callers that show the subject themselves.
    subject : str
        Empty if the message has none.
    problems : tuple of str
        The problems; the message alone when there is only one.
    found : tuple of Problem
        Empty where no paths are known.
    exit_status : int
        What a shell command ends with when this error reaches it.
    shown : int
        How many problems its text says one by one, before it says how many more there are.
    labels : mapping
        For the owner alone, and never in a text: column -> label that its hierarchy lacks -> how many cells have it.
    """

    exit_status = 3
    shown = SHOWN

    def __init__(
        self, message: str, problems: Sequence[str] = (), found: Sequence[Problem] = (), subject: str = ""
    ) -> None:
        message, subject, *texts = (_error_text(text) for text in (message, subject, *problems))
        self.found = tuple(Problem(path, _error_text(text)) for path, text in found)
        # the arguments, so that errors can be pickled
        super().__init__(message, tuple(texts), self.found, subject)
        self.subject = subject
        self.text = (*texts, message)[0]
        self.message = setting(subject, subject) + ": " + message if subject else message
        self.problems: tuple[str, ...] = tuple(texts) or (self.message,)
        self.labels: Mapping[str, Mapping[str, int]] = {}

    def __str__(self) -> str:
        if self.problems == (self.message,):
            return self.message
        lines = [self.message, *(f"  {problem}" for problem in self.problems[: self.shown])]
        if len(self.problems) > self.shown:
            lines.append(f"  and {len(self.problems) - self.shown:,} more")
        return "\n".join(lines)

    @classmethod
    def collected(cls, summary: str, problems: Sequence[str], found: Sequence[Problem] = ()) -> AnonflowError:
        """Return one error for all `problems`; a single one is its own message.

        Raises
        ------
        ValueError
            If there are no problems.
        """
        if not problems:
            raise ValueError("an error needs at least one problem")
        if len(problems) == 1:
            return cls(problems[0], found=found)
        return cls(f"{summary}: {len(problems):,} problems", problems, found)

    def in_file(self, name: object) -> AnonflowError:
        """Return the same error, each problem with the name of the file that has it."""
        problems = [f"{name}: " + problem for problem in self.problems]
        return self.collected(f"{name}: cannot be used", problems).with_labels(self)

    def renamed(self, path: str, name: str) -> AnonflowError:
        """Return the same error with another name for a file, such as the one by which its user knows it."""
        problems = [
            _between_settings(problem, lambda plain: plain.replace(path, name)) for problem in self.problems
        ]
        return self.collected(f"{name}: cannot be used", problems).with_labels(self)

    def in_words(self, words: Mapping[str, str]) -> AnonflowError:
        """Return the same error with its settings in the words of another door, as :meth:`Sentence.in_words` takes them."""
        texts = [
            text.in_words(words) if isinstance(text, Sentence) else text
            for text in (self.message, *self.problems)
        ]
        return type(self)(
            texts[0], () if self.problems == (self.message,) else texts[1:], self.found
        ).with_labels(self)

    def with_labels(self, *errors: AnonflowError) -> AnonflowError:
        """Return this error with the :attr:`labels` of others."""
        self.labels = {column: labels for error in errors for column, labels in error.labels.items()}
        return self


class SchemaError(AnonflowError):
    """A schema that contradicts itself or the table."""

    exit_status = 2


class HierarchyError(AnonflowError):
    """A value generalization hierarchy that is no tree over the values."""

    exit_status = 2


class FlowError(AnonflowError):
    """A flow file that cannot be read or asks for something that does not exist."""

    exit_status = 2
    shown = 10 * SHOWN


class DataError(AnonflowError):
    """A table or a file that cannot be used as it is."""

    exit_status = 2


class ParameterError(AnonflowError):
    """A parameter outside its domain, or a name that nothing has."""

    exit_status = 2


class InfeasibleError(AnonflowError):
    """A request that no release can meet, with what to change."""

    exit_status = 1


class VerificationError(AnonflowError):
    """A release that does not keep what it promises."""

    exit_status = 1


@contextmanager
def errors_of(subject: str, *, shared: str) -> Iterator[None]:
    """Let errors of what several methods share begin with the name of the method that is run.

    Parameters
    ----------
    subject : str
        Its name.
    shared : str
        The subject that the shared code gives its errors.

    Raises
    ------
    AnonflowError
        The error that was raised inside.
    """
    try:
        yield
    except AnonflowError as error:
        if error.subject != shared:
            raise
        raise type(error)(error.text, subject=subject) from None


class AnonflowWarning(UserWarning):
    """The base of every warning that anonflow gives: one line that a person can act on, and never a cell's value."""


BUG = "this is a bug in anonflow, please report it"


def unforeseen(error: BaseException) -> str:
    """Return type and place of an error that nobody meant; its own words may hold a value, so they are left out."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
    return f"{type(error).__name__} at {at}"
