from _kit import call, edge, failing, message, records


def common(draw):
    flags = [
        draw.choice(
            (
                "-sort_repeated_fields_by_subfield key",
                "-sort_repeated_fields_by_subfield=id",
                "--sort_repeated_fields_by_subfield item.key",
                "-sort_repeated_fields_by_subfield item.id,key",
                "-sort_repeated_fields_by_subfield key,id",
                "-sort_repeated_fields_by_subfield other.key",
            )
        ),
        *draw.sample(
            ("-skip_all_colons", "-sort_fields_by_field_name", "-expand_all_children", "-dry_run"),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, message(draw, 1) + records(draw))


def boundary(draw):
    return edge(
        draw,
        draw.choice(
            (
                "-sort_repeated_fields_by_subfield k",
                "-sort_repeated_fields_by_subfield m.k",
                '-sort_repeated_fields_by_subfield ""',
                "-sort_repeated_fields_by_subfield .k",
                "-sort_repeated_fields_by_subfield m.",
            )
        ),
    )


def error(draw):
    return failing(
        draw,
        draw.choice(("-sort_repeated_fields_by_subfield key",)),
        (
            "-sort_repeated_fields_by_subfield=key,id gone.pb",
            "-sort_repeated_fields_by_subfields key",
            "-sort_repeated_fields_by_subfield key nothing.pb",
        ),
    )
