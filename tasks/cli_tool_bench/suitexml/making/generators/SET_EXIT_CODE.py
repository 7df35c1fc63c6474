from _kit import EDGES, broken, failing, log, shown


def common(draw):
    flags = [
        "-set-exit-code",
        *draw.sample(
            ("-no-xml-header", f"-p {draw.word()}={draw.word()}", f"-package-name {draw.word()}"),
            draw.choice((0, 0, 1)),
        ),
    ]
    return shown(draw, " ".join(draw.sample(flags, len(flags))), log(draw, fail=0, broken_share=0), keep=True)


def boundary(draw):
    flag = draw.choice(
        (
            "-set-exit-code",
            "-set-exit-code=true",
            "-set-exit-code=false",
            "--set-exit-code=0",
            "-set-exit-code=T -subtest-mode ignore-parent-results",
        )
    )
    return shown(draw, flag, draw.choice(EDGES), keep=True)


def error(draw):
    if draw.chance(0.7):
        text = (
            log(draw, fail=0.9)
            + "\n".join(
                broken(draw)
                if draw.chance(0.3)
                else ["=== RUN   TestLast", "--- FAIL: TestLast (0.00s)", "FAIL", "FAIL\tpkg/last\t0.1s"]
            )
            + "\n"
        )
        return shown(draw, "-set-exit-code", text, keep=True)
    return failing(draw, "-set-exit-code")
