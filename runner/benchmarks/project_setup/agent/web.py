"""Hints on installing a project from pages that a search engine finds (ExecutionAgent, section 2.3.5)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, runtime_checkable
from urllib.parse import quote

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from runner.benchmarks.project_setup.agent.hints import hints
from runner.benchmarks.project_setup.agent.ingredients import Page, SearchError
from runner.records import Record

if TYPE_CHECKING:
    from runner.benchmarks.project_setup.agent.ingredients import Hint
    from runner.protocols import Bench

QUERY: Final = "How to install the {language} project '{project}' from source code?"
"""Query in the paper's words."""
PAGES: Final = 5
"""Number of results that are read, from the first."""


@runtime_checkable
class Search(Protocol):
    """Search engine, named by `_target_` under `agent.search`; its fields are its configuration."""

    def model_dump(self) -> dict[str, Any]:
        """Return the fields as plain values."""

    def refusal(self) -> str | None:
        """Return why the engine cannot be asked, as a sentence that says what to do; called before anything is paid."""

    def find(self, query: str) -> list[Page]:
        """Return the first results, with their texts if there are any. Raises `SearchError`."""


class Result(Record):
    """One result in an engine's answer."""

    address: str = Field(pattern=r"^https?://[^\x00-\x20\x7f]+$", max_length=2000)
    text: str | None = None


class HttpSearch(Record):
    """Search engine that answers one HTTP request with JSON.

    `{query}` and `{key}` stand for the query and the key in `url`, where both are quoted, and in the values of
    `headers` and `body`.
    """

    url: str
    headers: dict[str, str] = {}
    body: dict[str, Any] | None = None
    """Body that is sent as JSON with POST; None sends a GET request."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; never the key itself."""
    results: str
    """JMESPath from the answer to a list of mappings with `address` and, optionally, `text`."""
    read_pages: bool = True
    """True if each page is fetched. If not, the engine's own text of a result is used."""
    private: bool = False
    """True if pages are also read from this machine and its private networks, on any port."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        jmespath.compile(self.results)  # its exceptions are ValueErrors
        if "{query}" not in f"{self.url} {self.body}":
            raise ValueError("neither url nor body mentions {query}")
        return self

    def refusal(self) -> str | None:
        """See `Search`."""
        if not self.key_env or self._key:
            return None
        return f"agent.search needs its key: export {self.key_env}=..."

    def find(self, query: str) -> list[Page]:
        """See `Search`."""
        from runner.benchmarks.project_setup.agent import web_pages  # noqa: PLC0415 - HTTP and HTML load only where somebody searches

        key = self._key
        answer = web_pages.answer(
            _filled(self.url, quote(query, safe=""), quote(key, safe="")),
            {name: _filled(value, query, key) for name, value in self.headers.items()},
            self.body and {name: _filled(value, query, key) for name, value in self.body.items()},
        )
        found = self._results(answer.replace(key, "") if key else answer)
        if not self.read_pages:
            return [Page(address=result.address, text=result.text or "") for result in found]
        read = web_pages.read([result.address for result in found], private=self.private)
        texts = {result.address: result.text for result in found}
        return [
            page if page.text else page.model_copy(update={"text": texts[page.address] or ""})
            for page in read
        ]

    @property
    def _key(self) -> str:
        return os.environ.get(self.key_env, "") if self.key_env else ""

    def _results(self, answer: str) -> list[Result]:
        """Return the first results of an answer, each address once. Raises `SearchError`."""
        shape = "The search engine's answer does not have the shape that agent.search.results describes."
        try:
            found = jmespath.search(self.results, TypeAdapter(Any).validate_json(answer)) or []
        except (ValidationError, JMESPathError) as error:
            raise SearchError(shape) from error
        results = {
            one.address: one for one in map(_result, found if isinstance(found, list) else [found]) if one
        }
        if found and not results:
            raise SearchError(shape)
        return list(results.values())[:PAGES]


ENGINES: Final = {
    "brave": HttpSearch(
        url="https://api.search.brave.com/res/v1/web/search?q={query}",
        headers={"X-Subscription-Token": "{key}", "Accept": "application/json"},
        key_env="BRAVE_API_KEY",
        results="web.results[].{address: url, text: description}",
    ),
    "serper": HttpSearch(
        url="https://google.serper.dev/search",
        headers={"X-API-KEY": "{key}"},
        body={"q": "{query}"},
        key_env="SERPER_API_KEY",
        results="organic[].{address: link, text: snippet}",
    ),
    "tavily": HttpSearch(
        url="https://api.tavily.com/search",
        headers={"Authorization": "Bearer {key}"},
        body={"query": "{query}", "max_results": 5},
        key_env="TAVILY_API_KEY",
        results="results[].{address: url, text: content}",
    ),
}
"""Name -> search engine that works with one key. `agent.search=NAME` chooses it."""


def _result(found: Any) -> Result | None:
    """Return a result, or None for other things that engines mix in, such as advertisements."""
    try:
        return Result.model_validate(found)
    except ValidationError:
        return None


def web_hints(bench: Bench, search: Search, language: str, project: str) -> tuple[Hint, ...]:
    """Return hints from the web; empty, with the reason in the log, if there are none.

    Raises `Stopped` and `ModelFailed`.
    """
    query = QUERY.format(language=language, project=project)
    try:
        found = search.find(query)
    except SearchError as error:
        bench.log(f"Web: no hints. {error}")
        return ()
    bench.check()
    if not found:
        bench.log("Web: no hints. The search engine found nothing.")
    for page in found:
        bench.log(f"Web: {page.address}: {page.missing or f'{len(page.text)} characters'}")
    texts = {page.address: page.text for page in found if page.text.strip()}
    return hints(bench, texts, f"the page {{source}}, which a search engine found for: {query}")


def _filled(template: Any, query: str, key: str) -> Any:
    """Fill in a template. The query comes last, since a project may be called `{key}`."""
    if not isinstance(template, str):
        return template
    return template.replace("{key}", key).replace("{query}", query)
