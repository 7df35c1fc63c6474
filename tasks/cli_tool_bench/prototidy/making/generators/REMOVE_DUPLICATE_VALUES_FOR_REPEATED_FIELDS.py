from _kit import call, edge, failing, message, repeats


def common(draw):
    flags = [
        draw.choice(
            ("-remove_duplicate_values_for_repeated_fields", "--remove_duplicate_values_for_repeated_fields")
        ),
        *draw.sample(
            (
                "-sort_repeated_fields_by_content",
                "-sort_fields_by_field_name",
                "-expand_all_children",
                "-dry_run",
            ),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 2, ("tag",)) + repeats(draw))


def boundary(draw):
    return edge(
        draw,
        draw.choice(
            ("-remove_duplicate_values_for_repeated_fields", "-remove_duplicate_values_for_repeated_fields=0")
        ),
    )


def error(draw):
    return failing(
        draw,
        draw.choice(("-remove_duplicate_values_for_repeated_fields",)),
        (
            "-remove_duplicate_values_for_repeated_fields=x",
            "-remove_duplicates",
            "-remove_duplicate_values_for_repeated_fields nothing.pb",
        ),
    )
