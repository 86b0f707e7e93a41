"""
wrong: half of the layers stay, whatever the budget
check: gate, beat_40, beat_70, beat_90
phrase: Layers stream that could stay
"""


def plan(needs):
    layers, layer = needs["layers"], needs["forms"]["plain"]["layer_bytes"]
    count = layers // 2
    host = "pinned" if count * layer <= needs["pinned"] else "staged"
    return {"form": "plain", "streamed": spread(layers, count), "slots": 2, "host": host}
