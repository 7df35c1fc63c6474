"""Results of the preparation, which the feedback loop gets (ExecutionAgent, section 2.3)."""

from __future__ import annotations

from runner.records import Record


class Hint(Record):
    """Summary of what one document says about building the project and running its tests."""

    source: str
    """Path of the document in the project, or its web address."""
    text: str


class Ingredients(Record):
    """Results of the preparation for the command prompt. A field is empty if it was not wanted, or not found."""

    languages: tuple[str, ...] = ()
    """Main languages of the project by Linguist's names, the one with the most code first."""
    language_guidelines: str = ""
    """Guidelines for projects in these languages."""
    general_guidelines: str = ""
    """Guidelines for any project."""
    container_guidelines: str = ""
    ci_hints: tuple[Hint, ...] = ()
    """Hints from the project's scripts of continuous integration."""
    web_hints: tuple[Hint, ...] = ()
    """Hints from pages that a search engine found."""


class Page(Record):
    """A page that a search engine found."""

    address: str
    text: str = ""
    missing: str = ""
    """Reason why there is no text, as a sentence."""


class SearchError(Exception):
    """A search failed. The message says why and contains no key."""
