"""
wrong: keeps every layer once it is there
check: gate
phrase: Layers made resident
"""


class StreamingLayers(TrackedRing):
    def begin(self, steps):
        self.end = self.step + steps * self.layers
        self.kept = {}

    def ensure(self, layer):
        from xinfer_lab.residency.weights import LayerSlot
        from xinfer_lab.qwen2.layout import layer_layout

        if layer not in self.kept:
            config = self.device.sources._providers[0].config
            free = len(self.kept) < len(self.slots)
            slot = (
                self.slots[len(self.kept)]
                if free
                else LayerSlot(self.device, f"more[{layer}]", layer_layout(config), config.dtype)
            )
            self.engine.upload(layer, slot)
            self.kept[layer] = slot
        slot = self.kept[layer]
        self.device.direct_queue.wait(self.engine.copied, slot.ready)
        for buffer in slot.buffers:
            buffer.assume_common()
        return slot.holding(layer)

    def release(self, layer):
        self.step += 1
