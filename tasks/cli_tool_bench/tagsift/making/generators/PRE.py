from _kit import failing, page
from fuzz import Case, quote


def common(draw):
    pre = f'<pre class="note">{draw.word()}\n    {draw.word()} &amp; <b>{draw.sentence(2)}</b>\n\n\t{draw.word()}<br><!-- {draw.word()} --></pre>'
    flags = " ".join(draw.sample(("--pre", draw.choice(("", "-p", "-i 3", "-l 3"))), 2)).strip()
    words = draw.choice(("pre", "body", "", "pre.note", "body > pre", "div, pre", "pre b", "html"))
    return Case(
        f"{draw.tool} {flags} {quote(words) if words else ''} < page.html", {"page.html": page(draw, pre)}
    )


def boundary(draw):
    text = draw.choice(
        (
            "<pre>",
            "<pre>\n\nx</pre>",
            "<pre><pre>in</pre></pre>",
            "<pre>a<div>\n b</div></pre>",
            '<pre a="&lt;">&#39;</pre>',
            "<p>x<pre>  y</p>",
            "<pre><script>a<b</script></pre>",
            "<textarea>\n x</textarea>",
            "<PRE>  Z  </PRE>",
        )
    )
    return Case(
        f"{draw.tool} {draw.choice(('--pre', '--pre -p', '--pre -c', '-l 1 --pre'))} {draw.choice(('', 'pre', 'body'))} < in.html",
        {"in.html": draw.choice(("", draw.word())) + text},
    )


def error(draw):
    return failing(draw, "--pre")
