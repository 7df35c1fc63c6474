"""Sets of whole numbers, kept as spans. See README.md."""


def normalize(spans):
    raise NotImplementedError


def union(a, b):
    raise NotImplementedError


def subtract(a, b):
    raise NotImplementedError


def size(spans):
    raise NotImplementedError


def parse(text):
    raise NotImplementedError


def render(spans):
    raise NotImplementedError
