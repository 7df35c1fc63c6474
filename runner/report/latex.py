"""Turn foreign text into LaTeX that shows it and does nothing else.

Whatever the text is, pdfLaTeX typesets it: no sign of it is a command, a comment, a column, an optional argument or a
ligature, and no sign is one that its fonts lack.
"""

from __future__ import annotations

import re
from functools import lru_cache

from runner.terminal.escaping import one_line

_SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",  # active in some languages of babel
    # After the end of a row, a bracket or an asterisk would be an argument of that command.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    "\N{NO-BREAK SPACE}": "~",
    "\N{NON-BREAKING HYPHEN}": "-",
    "\N{EN DASH}": r"\textendash{}",
    "\N{EM DASH}": r"\textemdash{}",
    "\N{LEFT SINGLE QUOTATION MARK}": r"\textquoteleft{}",
    "\N{RIGHT SINGLE QUOTATION MARK}": r"\textquoteright{}",
    "\N{LEFT DOUBLE QUOTATION MARK}": r"\textquotedblleft{}",
    "\N{RIGHT DOUBLE QUOTATION MARK}": r"\textquotedblright{}",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{BULLET}": r"\textbullet{}",
    "\N{MIDDLE DOT}": r"\textperiodcentered{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{ALMOST EQUAL TO}": r"$\approx$",
    "\N{NOT EQUAL TO}": r"$\neq$",
    "\N{INFINITY}": r"$\infty$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{UPWARDS ARROW}": r"$\uparrow$",
    "\N{DOWNWARDS ARROW}": r"$\downarrow$",
    "\N{GREEK CAPITAL LETTER DELTA}": r"$\Delta$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$",
    "\N{GREEK SMALL LETTER KAPPA}": r"$\kappa$",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$",
    "\N{GREEK SMALL LETTER TAU}": r"$\tau$",
    "\N{SUPERSCRIPT TWO}": r"\texttwosuperior{}",
}
_LIGATURE = re.compile(r"([-',!?])(?=\1|\\textasciigrave)")
"""Signs that would merge into another, such as two hyphens into a dash."""
_ACCENTED = frozenset("ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿßæÆøØ")
"""Letters beyond ASCII that every text font has."""
_NUMBER = re.compile(r"-(?=\.?\d)")


@lru_cache(4096)
def escaped(text: str) -> str:
    """Return a text as LaTeX; a sign that pdfLaTeX's fonts may lack becomes its code point, such as (U+4EFB)."""
    signs = (_SIGNS.get(sign) or _plain(sign) for sign in one_line(text))
    return _LIGATURE.sub(r"\1{}", "".join(signs))


def figure(text: str) -> str:
    """Return a figure as LaTeX: as `escaped`, with a minus sign in front if it is negative."""
    negative = _NUMBER.match(text)
    return f"$-${escaped(text[1:])}" if negative else escaped(text)


def _plain(sign: str) -> str:
    return sign if sign.isascii() or sign in _ACCENTED else f"(U+{ord(sign):04X})"
