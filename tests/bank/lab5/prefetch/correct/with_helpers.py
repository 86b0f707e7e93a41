"""
note: helpers of its own, in the same cell
"""


def wait_for_frame(pool, page, frame):
    copies = pool.device.copy_queue
    if pool.last_use[frame]:
        copies.wait(pool.released, pool.last_use[frame])
    for value in (pool.emptied[frame], pool.returned[page]):
        if value:
            copies.wait(pool.saved, value)


def send(pool, page, frame):
    copies = pool.device.copy_queue
    with copies.record(f"bring page {page}") as commands:
        commands.copy(pool.span(frame), pool.home(page))
    copies.signal(pool.arrived, pool.arrived.last_submitted + 1)
    pool.ready[page] = pool.arrived.last_submitted


def prefetch(pool, page, ahead=True):
    table = pool.table
    if table.state(page) == "IN_HOST":
        frame = pool.make_room(ahead=ahead)
        if frame is not None:
            wait_for_frame(pool, page, frame)
            send(pool, page, frame)
            table.bind(page, frame)
            pool.policy.placed(page)
    return table.state(page) != "IN_HOST"
