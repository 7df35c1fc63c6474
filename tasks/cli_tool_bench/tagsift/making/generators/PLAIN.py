from _kit import failing, odd, usual


def common(draw):
    return usual(
        draw,
        draw.choice(("-p", "--plain")),
        more='<p data-k="a&amp;b" class="note">5 &lt; 6 &amp; "7"<!-- x & y --></p>',
        share=0.7,
    )


def boundary(draw):
    return odd(draw, draw.choice(("-p", "--plain", "-p -p", "--plain --pre")))


def error(draw):
    return failing(draw, draw.choice(("-p", "--plain")))
