"""
wrong: uploads everything at the start: right bits, over budget
check: prefetch, prefetch_ahead, gate
phrase: More slots in place of refilled ones
rule: prefetch_ahead.n_slots
"""


def prefetch(ring):
    from xinfer_lab.qwen2.layout import layer_layout
    from xinfer_lab.residency.weights import LayerSlot

    weights = ring.device.sources._providers[0]
    layout, dtype = layer_layout(weights.config), weights.config.dtype
    while len(ring.slots) < ring.layers:
        ring.slots.append(LayerSlot(ring.device, f"slot[{len(ring.slots)}]", layout, dtype))
    while ring.uploaded < ring.layers:
        ring.engine.upload(ring.uploaded, ring.slots[ring.uploaded])
        ring.uploaded += 1
