from _kit import call, edge, failing, message


def common(draw):
    flags = [
        draw.choice(("-sort_fields_by_field_name", "--sort_fields_by_field_name")),
        *draw.sample(
            (
                "-skip_all_colons",
                "-sort_repeated_fields_by_content",
                "-expand_all_children",
                "-dry_run",
                "-remove_duplicate_values_for_repeated_fields",
            ),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 2, ("tag", "alpha", "Zed", "tag_2", "tag2")))


def boundary(draw):
    return edge(draw, draw.choice(("-sort_fields_by_field_name", "-sort_fields_by_field_name=false")))


def error(draw):
    return failing(
        draw,
        draw.choice(("-sort_fields_by_field_name",)),
        ("-sort_fields_by_field_name=x", "-sort_fields", "-sort_fields_by_field_name nothing.pb"),
    )
