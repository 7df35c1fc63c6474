"""Files and folders, with one or several kinds of anonymization."""

from _configs import NAMES, config, failing, folder, numbers, run, salted
from fuzz import Case


def chosen(draw):
    """Return options, names and numbers of systems."""
    names, systems = draw.sample(NAMES, 2), numbers(draw)
    made = draw.sample([f"-w {','.join(names)}", f"-n {','.join(systems)}", "-a"], draw.integer(1, 3))
    return f"{' '.join(made)} {salted(draw)}", names, systems


def common(draw):
    """Return a case with a file or a folder."""
    options, names, systems = chosen(draw)
    if draw.chance(0.35):
        return run(draw, options, "", more=folder(draw, lambda: config(draw, names, systems)))
    return run(draw, options, config(draw, names, systems))


def boundary(draw):
    """Return a case with nothing to do, an empty file, or other line ends."""
    options, names, systems = chosen(draw)
    way = draw.integer(0, 4)
    if way == 0:
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg{draw.choice(('', ' -s x', ' --preserve-private-addresses', ' -r acme'))}",
            {"r.cfg": config(draw)},
        )
    if way == 1:
        return run(
            draw, options, draw.choice(("", "\n", "!", "日本語 10.1.2.3\n", "\n\n10.1.2.3", draw.text(2)))
        )
    if way == 2:
        return run(draw, options, config(draw, names, systems).replace("\n", "\r\n"))
    if way == 3:
        return Case(
            f"{draw.tool} -i r.cfg -o taken {options}",
            {"r.cfg": config(draw, names, systems), "taken/old.txt": "old\n"},
        )
    return Case(
        f"{draw.tool} -i r.cfg -o out.cfg {options}",
        {"r.cfg": config(draw, names, systems), "out.cfg": "old\n" * 40},
    )


def error(draw):
    """Return a case with a missing input, a bad combination of options, or wrong usage."""
    return failing(draw, chosen(draw)[0])
