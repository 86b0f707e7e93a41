"""Lab 5: draws the scripts of what is asked of a page pool.

In each of them some rule decides alone; in the drawn walks all of them together.
"""

from __future__ import annotations

from random import Random

from xinfer_lab.grading.piece import Case
from xinfer_lab.labs.lab5.clock_run import ClockRun
from xinfer_lab.labs.lab5.script import Op, PoolScript

__all__ = ["acquired", "asked_ahead", "evicted", "released", "written"]


class _Writer:
    """Writes a script. Pages go by their place in a drawn order."""

    def __init__(self, random: Random, frames: int, pages: int) -> None:
        self.random, self.frames, self.pages = random, frames, pages
        self.names = random.sample(range(pages), pages)
        self.ops: list[Op] = []

    def do(self, *ops: str) -> None:
        """``"acquire 3"``: the page is the third of the drawn order."""
        for op in ops:
            verb, _, place = op.partition(" ")
            self.ops.append((verb, self.names[int(place)]))

    def case(self, what: str, *, others: bool = False) -> Case:
        script = PoolScript(self.frames, self.pages, tuple(self.ops), self.random.randrange(2**31), others)
        beside = ", two pools in turn, after a third was closed" if others else ""
        return Case(f"{what}; {self.frames} frames, {self.pages} pages{beside}", script.inputs())


def _scan(random: Random, ahead: int) -> Case:
    """Pages in turn, each fetched ``ahead`` uses before its own: as layers are."""
    writer = _Writer(random, random.choice((3, 4)), random.randint(6, 7))
    uses = list(range(writer.pages)) * 2
    for place, page in enumerate(uses):
        writer.do(f"acquire {page}")
        writer.do(*(f"prefetch {next_}" for next_ in uses[place + 1 : place + 1 + ahead]))
        writer.do(f"use {page}", f"release {page}")
    return writer.case(f"pages in turn, {ahead} ahead")


def _choices(random: Random) -> Case:
    """Some pages at a time, fetched together and used one by one: as experts are. Some are used again soon, one is
    acquired twice, and some are fetched for nothing."""
    writer = _Writer(random, 4, random.randint(8, 9))
    # Fetched for nothing: what is fetched ahead does not take their frames, what is needed now does.
    writer.do(*(f"prefetch {page}" for page in range(2, 7)))
    for page in (6, 7):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    for _ in range(5):
        group = [*random.sample(range(2, writer.pages), 2), random.choice((0, 1))]
        random.shuffle(group)
        writer.do(*(f"prefetch {page}" for page in group))
        for page in group:
            writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    # Held twice: after one release it is still in use, whatever comes.
    writer.do("acquire 0", "acquire 0", "use 0", "release 0")
    for page in random.sample(range(2, writer.pages), 5):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    writer.do("use 0", "release 0")
    return writer.case("a few pages at a time")


def _full(random: Random) -> Case:
    """Every frame is acquired: nothing may go, and then one page may."""
    writer = _Writer(random, random.choice((2, 3)), random.randint(5, 6))
    held = list(range(writer.frames))
    for page in held:
        writer.do(f"acquire {page}", f"use {page}")
    other, another = writer.frames, writer.frames + 1
    writer.do(f"prefetch {other}", f"acquire {other}", f"acquire {held[0]}", f"use {held[0]}")
    writer.do(f"release {held[0]}", f"prefetch {another}", f"acquire {another}", f"release {held[-1]}")
    writer.do(f"acquire {another}", f"use {another}", f"acquire {other}")
    writer.do(f"release {held[0]}", f"prefetch {other}", f"acquire {other}", f"use {other}")
    rest = [page for page in (*held[:-1], other, another) if page != held[0]]
    writer.do(*(f"release {page}" for page in rest))
    return writer.case("every frame acquired")


def _written(random: Random, again: int) -> Case:
    """Pages that are written and read in turn, as KV pages are; every ``again``-th is only read, and some come back
    right after they have left."""
    writer = _Writer(random, 3, random.randint(6, 7))
    # The page comes back at once, into another frame than it left; and another page comes into its frame at once.
    for page, verb in ((0, "acquire"), (1, "write"), (2, "write")):
        writer.do(f"{verb} {page}", *([f"put {page}"] if verb == "write" else []), f"use {page}", f"release {page}")
    writer.do("evict 1", "evict 0", "acquire 1", "use 1", "release 1", "evict 2", "evict 1", "acquire 3", "acquire 4")
    writer.do("acquire 2", "use 4", "use 3", "use 2", "release 3", "release 2", "release 4")
    for number, page in enumerate(list(range(writer.pages)) * 2):
        if number % again:
            writer.do(f"write {page}", f"put {page}")
            if random.random() < 0.5:
                writer.do(f"put {page}")
            writer.do(f"use {page}", f"release {page}")
        else:
            writer.do(f"acquire {page}", f"use {page}", f"release {page}")
        writer.do(f"prefetch {(page + 1) % writer.pages}")
    # Written, gone, and asked for again at once: its bytes have to be home first.
    for page in range(3):
        writer.do(f"write {page}", f"put {page}", f"release {page}")
    for page in (3, 4, 5):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}", f"acquire {page - 3}", f"use {page - 3}")
        writer.do(f"release {page - 3}")
    return writer.case("pages written and read")


def _second_chances(random: Random) -> Case:
    """What the policy hears shows in who leaves: a page that is used when it has just come, one that is found again,
    and one that is fetched ahead although it is there, which is no use."""
    writer = _Writer(random, 3, random.randint(6, 7))

    def use(page: int) -> None:
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")

    # The pages from the hand on, * is a mark: 0* 1* 2*, of which 1 is on its way.
    use(0)
    writer.do("prefetch 1")
    use(2)
    use(3)  # takes all marks, and 0 goes: 1 2 3*
    use(1)  # it has just come: 1* 2 3*
    use(4)  # takes the mark of 1, and 2 goes: 3* 1 4*
    use(1)  # found again: 3* 1* 4*
    use(5)  # takes all marks, and 3 goes: 1 4 5*
    writer.do("prefetch 1")  # it is there, and nobody uses it: as before
    use(0)  # 1 goes: 4 5* 0*
    for page in (4, 1, 5, 2):
        use(page)
    return writer.case("second chances")


def _shared(random: Random) -> Case:
    """Pages that several use at once, and some of them write: the second user, the first, both; and pages that are
    found again, and only read or written then."""
    writer = _Writer(random, random.choice((3, 4)), 6)
    meetings = [
        "write 0, put 0, acquire 0, use 0, release 0, release 0",
        "acquire 1, use 1, write 1, put 1, release 1, release 1",
        "write 2, put 2, write 2, put 2, release 2, use 2, release 2",
        "acquire 3, acquire 3, write 3, acquire 3, put 3, release 3, use 3, release 3, release 3, release 3",
        "write 4, put 4, release 4, acquire 4, use 4, release 4",
        "acquire 5, use 5, release 5, write 5, put 5, release 5",
    ]
    random.shuffle(meetings)
    for meeting in meetings:
        writer.do(*meeting.split(", "))
        page = meeting.partition(", ")[0].partition(" ")[2]
        # Once more, and now it was written before: its bytes are those that went home and came back.
        writer.do(f"evict {page}", f"acquire {page}", f"use {page}", f"release {page}")
        writer.do(*meeting.split(", "), f"evict {page}", f"prefetch {page}", f"acquire {page}", f"use {page}")
        writer.do(f"release {page}")
    return writer.case("pages with several users")


def _elsewhere(random: Random) -> Case:
    """A page that is written and leaves, again and again, and comes back at once into another frame each time: what
    says that it is home is noted for the page, and anew."""
    writer = _Writer(random, 3, 7)
    writer.do("write 0", "put 0", "release 0")
    for other in (1, 2, 3, 4, 5):
        # A lower frame than the page's own becomes free first, or a higher one is the only one that is.
        writer.do(f"prefetch {other}", f"acquire {other}", f"use {other}", f"release {other}", "evict 0")
        writer.do(*(["prefetch 6"] if other % 2 else []), f"evict {other}", "prefetch 0", "write 0", "use 0", "put 0")
        writer.do(*(["evict 6"] if other % 2 else []), "release 0")
    writer.do("evict 0", "acquire 0", "use 0", "release 0")
    return writer.case("a page leaves and comes back into another frame")


def _long(random: Random, written: bool) -> Case:
    """As many pages as it takes for pages and fence values to pass 256."""
    writer = _Writer(random, 8, 272)
    for place in range(writer.pages):
        if place + 1 < writer.pages:
            writer.do(f"prefetch {place + 1}")
        wants = written and place % 25
        writer.do(*([f"write {place}", f"put {place}"] if wants else [f"acquire {place}", f"use {place}"]))
        writer.do(f"release {place}")
    for place in range(writer.pages - 12, writer.pages):
        writer.do(f"acquire {place}", f"use {place}", f"release {place}")
    return writer.case("many pages in turn")


LENGTH = 120
"""Requests of a drawn walk."""


class _Walk:
    """Requests as they come: whatever is in order now, some of it more often than other things."""

    def __init__(self, random: Random, written: bool) -> None:
        self.random, self.written = random, written
        frames = random.randint(3, 8)
        self.writer = _Writer(random, frames, frames + random.randint(3, 6))
        self.pool = ClockRun(frames)

    def case(self, *, others: bool = False) -> Case:
        while len(self.writer.ops) < LENGTH:
            self._step()
        for page, count in list(self.pool.pins.items()):
            for _ in range(count):
                self._ask("release", page)
        return self.writer.case("drawn requests", others=others)

    def _step(self) -> None:
        used = [page for page, count in self.pool.pins.items() if count]
        idle = sorted(self.pool.held - set(used))
        verb = self.random.choice(("prefetch", "acquire", "acquire", "again", "use", "release", "release", "evict"))
        if verb == "evict" and idle and self.random.random() < 0.5:
            self._ask("evict", self.random.choice(idle))
        elif verb == "again" and used:
            self._acquire(self.random.choice(used))
        elif verb == "use" and used:
            self.writer.ops.append(("use", self.random.choice(used)))
        elif verb == "release" and used:
            self._ask("release", self.random.choice(used))
        elif verb == "prefetch":
            self._ask("prefetch", self.random.randrange(self.writer.pages))
        elif verb == "acquire":
            # More often than not a page that is there, or was.
            known = idle if idle and self.random.random() < 0.4 else range(self.writer.pages)
            self._acquire(self.random.choice(known))

    def _acquire(self, page: int) -> None:
        write = self.written and self.random.random() < 0.5
        if self._ask("acquire", page, "write" if write else "acquire"):
            self.writer.ops.append(("put" if write else "use", page))

    def _ask(self, name: str, page: int, verb: str = "") -> bool:
        self.writer.ops.append((verb or name, page))
        return self.pool.take(name, page)


def _asked_again(random: Random) -> Case:
    """A page on its way is asked for again, ahead: no use of it, so that it is the next to go."""
    writer = _Writer(random, 3, random.randint(6, 7))
    # From the hand on, * is a mark: 0* 1* 2*, of which 1 is on its way.
    writer.do("acquire 0", "use 0", "release 0", "prefetch 1", "acquire 2", "use 2", "release 2")
    writer.do("acquire 3", "use 3", "release 3")  # takes all marks, and 0 goes: 1 2 3*
    writer.do("prefetch 1", "prefetch 1")  # still on its way, and still without a mark
    writer.do("acquire 4", "use 4", "release 4")  # 1 goes: 2 3* 4*
    for page in (2, 1, 5, 0):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    return writer.case("a page on its way is asked for again")


def asked_ahead(random: Random) -> list[Case]:
    """For `prefetch`."""
    cases = [_scan(random, 1), _scan(random, 2), _choices(random), _full(random), _written(random, 3)]
    cases += [_second_chances(random), _asked_again(random), _elsewhere(random), _long(random, True)]
    return [*cases, _Walk(random, True).case(others=True)]


def acquired(random: Random) -> list[Case]:
    """For `acquire`."""
    cases = [_scan(random, 1), _choices(random), _full(random), _written(random, 3), _second_chances(random)]
    return [*cases, _shared(random), _long(random, False), _Walk(random, True).case(others=True)]


def released(random: Random) -> list[Case]:
    """For `release`."""
    cases = [_scan(random, 2), _choices(random), _full(random), _written(random, 3)]
    return [*cases, _shared(random), _long(random, False), _Walk(random, True).case(others=True)]


def evicted(random: Random) -> list[Case]:
    """For `evict`, as long as nothing is written."""
    cases = [_scan(random, 1), _choices(random), _full(random), _long(random, False)]
    return [*cases, _Walk(random, False).case(others=True)]


def written(random: Random) -> list[Case]:
    """For `evict`, with pages that are written."""
    cases = [_written(random, 2), _written(random, 3), _choices(random), _shared(random), _elsewhere(random)]
    return [*cases, _long(random, True), _Walk(random, True).case(others=True)]
