from _kit import failing, page
from fuzz import Case


def common(draw):
    label, shown = draw.choice(
        (
            ("latin1", "caf\\351 \\337"),
            ("ISO-8859-1", "na\\357ve"),
            ("windows-1252", "\\200 5 \\223x\\224"),
            ("utf-8", "\\303\\251t\\303\\251"),
            ("UTF8", "\\342\\202\\254"),
            ("iso-8859-2", "\\261\\352"),
            ("koi8-r", "\\360\\322\\311"),
            ("windows-1251", "\\317\\360"),
            ("iso-8859-15", "\\244 9"),
            ("utf-16le", ""),
            ("ascii", "\\351"),
            ("macintosh", "\\216"),
        )
    )
    name = draw.word()
    if label == "utf-16le":
        letters = "".join(f"{c}\\000" for c in f"<p>{name}</p>")
        return Case(
            f"{draw.tool} {draw.choice(('-n', '', '-i 2'))} p --charset utf-16le < page.html",
            prep=f"printf '{letters}' > page.html",
        )
    flags = " ".join(
        draw.sample((f"--charset {label}", draw.choice(("p", "body text{}", "p json{}", "title", ""))), 2)
    )
    return Case(
        f"{draw.tool} {flags} < page.html",
        prep=f"printf '<title>{name} {shown}</title><p class={name}>{shown}</p>{draw.integer()}' > page.html",
    )


def boundary(draw):
    head = draw.choice(
        (
            "",
            "<meta charset=utf-8>",
            "<meta charset=iso-8859-2>",
            '<meta http-equiv=Content-Type content="text/html; charset=koi8-r">',
            "\\357\\273\\277",
        )
    )
    text = draw.choice(("\\351\\352", "\\303\\251", "plain", "\\377\\376", "\\342\\202", "\\200"))
    flag = draw.choice(
        (
            "",
            "--charset utf-8",
            "--charset l1",
            "--charset UTF-8 --charset latin2",
            '--charset " utf-8 "',
            "--charset x-user-defined",
        )
    )
    return Case(
        f"{draw.tool} {flag} {draw.choice(('body', 'p text{}'))} < in.html",
        prep=f"printf '{head}<p>{text} {draw.word()}</p>' > in.html",
    )


def error(draw):
    label = draw.choice(("klingon", "utf-9", '"" --plane', "latin-99", "u t f", "8859", "-", "none"))
    if draw.chance(0.6):
        return Case(
            f"{draw.tool} {draw.choice(('p', 'li', 'text{}', '-n p'))} --charset {draw.choice((label, label.upper() + draw.word()))} < in.html",
            {"in.html": page(draw)},
        )
    return failing(draw, "-n")
