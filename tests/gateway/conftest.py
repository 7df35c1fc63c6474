"""Sessions at one real gateway, over their unix sockets, in front of a fake provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from runner.gateway import Gateway, Session, SessionSpec
from runner.records import Budget, Model, Prices
from tests.support.serving import KEY_VARIABLE

Json = dict[str, Any]
Open = Callable[..., Session]
Http = Callable[..., httpx.Client]
HELLO: Json = {"messages": [{"role": "user", "content": "hello"}]}
CANARY = "sk-canary-0123456789abcdef"
PRICES = Prices(input=2.0, output=10.0, cache_creation=2.5, cache_hit=0.5)


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> str:
    """The provider's key."""
    monkeypatch.setenv(KEY_VARIABLE, CANARY)
    return CANARY


@pytest.fixture
def session(gateway: Gateway, tmp_path: Path) -> Iterator[Open]:
    """Open sessions that end with the test: `session(url, id="zai/x", budget=..., seconds=..., **model fields)`."""
    with ExitStack() as stack:

        def open_session(
            url: str | None = None,
            *,
            budget: Budget | None = None,
            seconds: float | None = None,
            name: str = "trial",
            cassette: Path | None = None,
            **fields: object,
        ) -> Session:
            if url and str(fields.get("id")).startswith("anthropic/"):
                url = url.removesuffix("/v1")  # litellm adds it for this provider
            model = {
                "name": "fake",
                "id": "openai/x",
                "api_key_env": "FAKE_API_KEY",
                "api_base": url,
                "prices": PRICES,
            }
            spec = SessionSpec(
                trial=name,
                task="greet",
                model=Model.model_validate(model | fields),
                budget=budget or Budget(),
                seconds=seconds,
                ledger=tmp_path / name / "ledger.jsonl",
                cassette=cassette,
            )
            return stack.enter_context(gateway.open(spec))

        yield open_session


@pytest.fixture
def http() -> Iterator[Http]:
    """Open HTTP clients on a session's socket, with its key or another one."""
    with ExitStack() as stack:

        def connect(session: Session, key: str | None = None) -> httpx.Client:
            # Unverified: there is no TLS on a socket, and reading the certificates takes 40 ms each time.
            transport = httpx.HTTPTransport(uds=str(session.socket_dir / "gateway.sock"), verify=False)
            headers = {"authorization": f"Bearer {session.key if key is None else key}"}
            client = httpx.Client(transport=transport, base_url="http://gateway", headers=headers, timeout=60)
            return stack.enter_context(client)

        yield connect


@pytest.fixture
def client(http: Http) -> Callable[[Session], openai.OpenAI]:
    """Open the official client on a session's socket."""

    def connect(session: Session) -> openai.OpenAI:
        return openai.OpenAI(
            api_key=session.key, base_url="http://gateway/v1", http_client=http(session), max_retries=0
        )

    return connect


@pytest.fixture
def messages() -> Iterator[Callable[[Session], Any]]:
    """Return the official client's `beta.messages`, which calls `/v1/messages?beta=true` as Claude Code does."""
    import anthropic  # noqa: PLC0415 - 3,000 modules, which every worker would import to collect tests
    import httpx2  # noqa: PLC0415 - the HTTP client of `anthropic`

    stack = ExitStack()

    def connect(session: Session) -> Any:
        transport = httpx2.HTTPTransport(uds=str(session.socket_dir / "gateway.sock"), verify=False)
        client = anthropic.Anthropic(
            api_key=session.key,
            base_url="http://gateway",
            http_client=stack.enter_context(httpx2.Client(transport=transport)),
            max_retries=0,
        )
        return client.beta.messages

    with stack:
        yield connect
