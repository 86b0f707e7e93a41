"""
wrong: returns weights of a resident source
check: ensure_fence, ensure_state, gate
phrase: more device memory
"""


def ensure(ring, layer):
    from xinfer_lab.qwen2.layout import layer_layout
    from xinfer_lab.residency.resident import ResidentLayers

    if not hasattr(ring, "resident"):
        config = ring.device.sources._providers[0].config
        ring.resident = ResidentLayers(ring.device, layer_layout(config), config.dtype, ring.layers)
        ring.resident.begin(99)
    weights = ring.resident.ensure(layer)
    ring.resident.release(layer)
    return weights
