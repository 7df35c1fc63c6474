from _kit import EDGES, failing, log, shown


def common(draw):
    mode = draw.choice(("ignore-parent-results", "exclude-parents"))
    flags = [
        draw.choice((f"-subtest-mode {mode}", f"-subtest-mode={mode}", f"--subtest-mode {mode}")),
        *draw.sample(
            ("-no-xml-header", f"-p {draw.word()}={draw.word()}", "-parser gotest"), draw.choice((0, 0, 1))
        ),
    ]
    return shown(
        draw, " ".join(draw.sample(flags, len(flags))), log(draw, draw.integer(1, 2), sub=0.8), keep=True
    )


def boundary(draw):
    mode = draw.choice(
        (
            "ignore-parent-results",
            "exclude-parents",
            '""',
            "exclude-parents -subtest-mode ignore-parent-results",
        )
    )
    return shown(draw, f"-subtest-mode {mode}", draw.choice(EDGES[:-1]))


def error(draw):
    word = draw.word()
    return failing(
        draw,
        f"-subtest-mode {draw.choice(('exclude-parents', 'ignore-parent-results'))}",
        (
            f"-subtest-mode {word}",
            "-subtest-mode exclude-parent",
            "-subtest-mode Exclude-Parents",
            f"-subtest-mode ignore-{word}",
        ),
    )
