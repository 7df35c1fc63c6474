from _kit import call, edge, failing, message


def common(draw):
    flags = [
        draw.choice(("-skip_all_colons", "--skip_all_colons", "-skip_all_colons=T")),
        *draw.sample(
            ("-expand_all_children", "-preserve_angle_brackets", "-sort_fields_by_field_name", "-dry_run"),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 3))


def boundary(draw):
    return edge(draw, draw.choice(("-skip_all_colons", "-skip_all_colons=0")))


def error(draw):
    return failing(
        draw,
        draw.choice(("-skip_all_colons",)),
        ("-skip_all_colons=x", "-skip_colons", "-skip_all_colons nothing.pb"),
    )
