from _kit import call, edge, failing, message


def common(draw):
    flags = [
        draw.choice(("-dry_run", "--dry_run", "-dry_run=true")),
        *draw.sample(
            (
                "-skip_all_colons",
                "-preserve_angle_brackets",
                "-sort_fields_by_field_name",
                "-expand_all_children",
                "-smart_quotes",
            ),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw))


def boundary(draw):
    return edge(draw, draw.choice(("-dry_run", "-dry_run=false", "-dry_run -expand_all_children")))


def error(draw):
    return failing(draw, draw.choice(("-dry_run", "--dry_run")), ("-dry_run=x", "-dry_run nothing.pb"))
