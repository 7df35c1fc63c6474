from _kit import call, edge, failing, message, angles


def common(draw):
    flags = [
        draw.choice(
            ("-preserve_angle_brackets", "--preserve_angle_brackets", "-preserve_angle_brackets=true")
        ),
        *draw.sample(
            ("-skip_all_colons", "-sort_fields_by_field_name", "-expand_all_children", "-dry_run"),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 2) + angles(draw))


def boundary(draw):
    return edge(draw, draw.choice(("-preserve_angle_brackets", "-preserve_angle_brackets=false")))


def error(draw):
    return failing(
        draw,
        draw.choice(("-preserve_angle_brackets",)),
        ("-preserve_angle_brackets=x", "-preserve_angles", "-preserve_angle_brackets nothing.pb"),
    )
