from _kit import call, edge, failing, message, repeats


def common(draw):
    flags = [
        draw.choice(("-sort_repeated_fields_by_content", "--sort_repeated_fields_by_content")),
        *draw.sample(
            (
                "-skip_all_colons",
                "-sort_fields_by_field_name",
                "-sort_fields_by_field_name",
                "-dry_run",
                "-remove_duplicate_values_for_repeated_fields",
            ),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 2, ("tag",)) + repeats(draw))


def boundary(draw):
    return edge(
        draw, draw.choice(("-sort_repeated_fields_by_content", "-sort_repeated_fields_by_content=false"))
    )


def error(draw):
    return failing(
        draw,
        draw.choice(("-sort_repeated_fields_by_content",)),
        (
            "-sort_repeated_fields_by_content=x",
            "-sort_repeated_fields",
            "-sort_repeated_fields_by_content nothing.pb",
        ),
    )
