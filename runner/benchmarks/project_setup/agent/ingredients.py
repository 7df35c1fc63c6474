"""What the preparation gives to the feedback loop (ExecutionAgent, section 2.3)."""

from __future__ import annotations

from runner.records import Record


class Hint(Record):
    """What one document says of building the project and running its tests."""

    source: str
    """Its path in the project, or its address."""
    text: str


class Ingredients(Record):
    """What goes into the command prompt from the preparation; empty is what was not asked for, or not found."""

    languages: tuple[str, ...] = ()
    """Main languages of the project, the one with most code first, as Linguist names them."""
    language_guidelines: str = ""
    """How projects in these languages are built and tested."""
    general_guidelines: str = ""
    """How any project is."""
    container_guidelines: str = ""
    ci_hints: tuple[Hint, ...] = ()
    """Of scripts of continuous integration in the project."""
    web_hints: tuple[Hint, ...] = ()
    """Of pages that a search engine found."""


class Page(Record):
    """A page that a search engine found."""

    address: str
    text: str = ""
    missing: str = ""
    """Why there is no text, as a sentence."""


class SearchError(Exception):
    """A search gave nothing; the message says why and contains no key."""
