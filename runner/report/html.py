"""Render the templates of the report. All text is escaped, and a page runs its own script or none."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from runner.terminal.escaping import printable

_LOADER = PackageLoader("runner.report")


def _visible(value: object) -> object:
    """Return a text with its control characters and marks of direction as escapes: names are other people's."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment() -> Environment:
    """Return the environment of the templates."""
    return Environment(
        loader=_LOADER,
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, scripts: Sequence[str] = (), **values: Any) -> str:
    """Return a page made of a template, whose only script is made of these files of `templates/`.

    The template is given `script`, and `digest` for the page's policy.
    """
    script = "".join(source(name) for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = Markup(script)  # noqa: S704 - ours, from templates/
    return environment().get_template(template).render(values, script=own, digest=digest)


def source(name: str) -> str:
    """Return the source of a template."""
    return _LOADER.get_source(environment(), name)[0]
