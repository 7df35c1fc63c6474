from _kit import call, edge, failing, paragraphs


def common(draw):
    flags = [
        draw.choice(
            (
                f"-wrap_strings_at_column {draw.choice((20, 30, 40, 60, 80))}",
                f"-wrap_strings_at_column={draw.choice((25, 33, 50))}",
                f"--wrap_strings_at_column {draw.choice((24, 45))}",
            )
        ),
        *draw.sample(
            (
                "-skip_all_colons",
                "-wrap_html_strings",
                "-sort_fields_by_field_name",
                "-dry_run",
                "-expand_all_children",
            ),
            draw.choice((0, 0, 0, 1)),
        ),
    ]
    return call(draw, flags, paragraphs(draw))


def boundary(draw):
    return edge(
        draw,
        draw.choice(
            (
                "-wrap_strings_at_column 0",
                "-wrap_strings_at_column 10",
                "-wrap_strings_at_column 12",
                "-wrap_strings_at_column 1000",
                "-wrap_strings_at_column -5",
            )
        ),
    )


def error(draw):
    return failing(
        draw,
        draw.choice(("-wrap_strings_at_column 40",)),
        (
            "-wrap_strings_at_column",
            "-wrap_strings_at_column wide",
            "-wrap_strings_at_column 4.5",
            "-wrap_strings_at_column=",
            "-wrap_strings 40",
            "-wrap_strings_at_column 40 nothing.pb",
        ),
    )
