"""Ask a search engine and read web pages, within limits of time, size and number.

A page's host is looked up once, and the connection goes to the address that was checked, also after each redirection.
Otherwise a page could make us read what only this machine and its networks can see.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import httpx
from justhtml import JustHTML

from runner import __version__
from runner.benchmarks.project_setup.agent.ingredients import Page, SearchError
from runner.gateway.egress import PORTS, outside

SECONDS: Final = 20.0
"""Time limit for one page, or one answer of a search engine, from the look-up of its host to its last byte."""
MOST_BYTES: Final = 1 << 20
"""Largest part of a page or an answer that is read."""
HOPS: Final = 5
"""Largest number of redirections that are followed."""
HEADERS: Final = {"User-Agent": f"assay/{__version__}", "Accept": "text/html, text/plain;q=0.9"}
TEXT: Final = ("text/html", "application/xhtml+xml", "text/plain")


class UnreadableError(Exception):
    """A page has no text that can be read; the message says why."""


class _Document(NamedTuple):
    kind: str
    content: bytes
    charset: str | None
    """Encoding that the server names; the page itself may name another."""


def answer(url: str, headers: dict[str, str], body: dict[str, Any] | None) -> str:
    """Return a search engine's answer to one request: POST with JSON if there is a body, otherwise GET.

    The user chose the engine, so any address is allowed, and this machine's proxy is used. Raises `SearchError`, whose
    message contains neither address nor headers, since they may contain a key.
    """
    _quiet()
    try:
        return asyncio.run(_answer(url, headers, body))
    except TimeoutError as error:
        raise SearchError(f"The search engine did not answer within {SECONDS:g} s.") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise SearchError(f"The search engine cannot be asked ({type(error).__name__}).") from None


def read(addresses: Sequence[str], *, private: bool) -> list[Page]:
    """Return the pages at these addresses, each with its text or the reason why there is none.

    All pages are fetched at once and parsed afterwards, so that no page uses up another's time.
    """
    _quiet()
    fetched = asyncio.run(_fetch_all(addresses, private=private))
    return [_page(address, found) for address, found in zip(addresses, fetched, strict=True)]


def _quiet() -> None:
    for name in ("httpx", "httpcore"):  # they log addresses and headers
        logging.getLogger(name).setLevel(logging.CRITICAL)


async def _answer(url: str, headers: dict[str, str], body: dict[str, Any] | None) -> str:
    method = "GET" if body is None else "POST"
    async with (
        asyncio.timeout(SECONDS),
        httpx.AsyncClient(verify=_trusted(), timeout=SECONDS) as client,
        client.stream(method, url, headers=HEADERS | headers, json=body) as response,
    ):
        if response.status_code != HTTPStatus.OK:
            raise SearchError(f"The search engine answered with status {response.status_code}.")
        return (await _content(response)).decode(errors="replace")


def _page(address: str, found: _Document | str) -> Page:
    """Return a page from its document, or from the reason why there is none."""
    if isinstance(found, str):
        return Page(address=address, missing=found)
    if found.kind == "text/plain":
        return Page(address=address, text=found.content.decode(errors="replace"))
    try:
        # The parser knows the names of encodings, and replaces bytes that do not fit.
        html = JustHTML(found.content, encoding=found.charset)
    except ValueError:
        return Page(address=address, missing="Its HTML cannot be read.")
    return Page(address=address, text=html.to_text("\n", separator_blocks_only=True))


async def _fetch_all(addresses: Sequence[str], *, private: bool) -> list[_Document | str]:
    async with httpx.AsyncClient(verify=_trusted(), timeout=SECONDS, trust_env=False) as client:
        return await asyncio.gather(*(_fetched(client, address, private=private) for address in addresses))


async def _fetched(client: httpx.AsyncClient, address: str, *, private: bool) -> _Document | str:
    """Return the document at an address, or a sentence that says why there is none."""
    try:
        async with asyncio.timeout(SECONDS):
            return await _document(client, address, private=private)
    except TimeoutError:
        return f"It was not there within {SECONDS:g} s."
    except UnreadableError as error:
        return str(error)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return f"It cannot be read ({type(error).__name__})."


async def _document(client: httpx.AsyncClient, address: str, *, private: bool) -> _Document:
    url = httpx.URL(address)
    for _ in range(HOPS + 1):
        host = url.raw_host.decode("ascii")
        checked = url.copy_with(host=await _checked(url, private=private))
        headers = HEADERS | {"Host": url.netloc.decode("ascii")}
        request = client.build_request("GET", checked, headers=headers, extensions={"sni_hostname": host})
        response = await client.send(request, stream=True)
        async with aclosing(response):
            if not response.has_redirect_location:
                return await _readable(response)
            url = url.join(response.headers["location"])
    raise UnreadableError(f"It leads on to other addresses more than {HOPS} times.")


async def _checked(url: httpx.URL, *, private: bool) -> str:
    """Return the network address to connect to. Raises `UnreadableError`, and `OSError` for an unknown host."""
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    if port is None or not (private or port in PORTS):
        raise UnreadableError("It is not the address of a web page.")
    host = url.raw_host.decode("ascii")
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, (address, *_) in found:
        if private or outside(ipaddress.ip_address(str(address))):
            return str(address)
    raise UnreadableError("Its host is this machine, or in a private network.")


async def _readable(response: httpx.Response) -> _Document:
    kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if response.status_code != HTTPStatus.OK:
        raise UnreadableError(f"Its server answers with status {response.status_code}.")
    if kind not in TEXT:
        raise UnreadableError(f"It is not text ({kind[:40]}).")
    return _Document(kind, await _content(response), response.charset_encoding)


async def _content(response: httpx.Response) -> bytes:
    content = bytearray()
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) >= MOST_BYTES:
                break
    return bytes(content[:MOST_BYTES])


def _trusted() -> ssl.SSLContext:
    """Return a context with this machine's certificates and those that SSL_CERT_FILE names."""
    return ssl.create_default_context()
