def answer(argv):
    return None
