from _kit import call, edge, failing, message


def common(draw):
    flags = [
        draw.choice(("-expand_all_children", "--expand_all_children", "-expand_all_children=1")),
        *draw.sample(
            ("-skip_all_colons", "-preserve_angle_brackets", "-sort_fields_by_field_name", "-dry_run"),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 3))


def boundary(draw):
    return edge(draw, draw.choice(("-expand_all_children", "-expand_all_children=f")))


def error(draw):
    return failing(
        draw,
        draw.choice(("-expand_all_children",)),
        ("-expand_all_children=x", "-expand_all", "-expand_all_children nothing.pb"),
    )
