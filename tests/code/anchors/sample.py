import os


@dataclass
class Box(Base):
    size: int = 3

    def __init__(self, value, *rest, key=None):
        super().__init__()
        self.value = value
        a, (b, c) = rest

    @property
    async def area(self) -> int:
        """Doc."""
        def inner(x):
            yield x
        return await self.size_of(inner(1))


def walk(items):
    total = 0
    for i, item in enumerate(items):
        if item.ok and check(item):
            continue
        elif (n := len(item)) > 3:
            total += n
        else:
            total -= 1
    while total:
        total //= 2
    with open(os.path.join("a", f"{name()}")) as f, lock:
        data[0] = f.read()
    try:
        assert data, "none"
    except (OSError, ValueError) as e:
        raise RuntimeError(str(e)) from e
    finally:
        close()
    squares = [x * x for x in items if keep(x)]
    match total:
        case [a, b] if a:
            return a if b else b
        case _:
            pass
    return sorted(items, key=lambda x: x.name)
