"""
wrong: gives each layer a slot of its own
check: serial, gate
phrase: A second slot
rule: serial.one_slot
"""

from xinfer_lab.residency.weights import LayerSlot


class SerialLayers(OneSlot):
    def ensure(self, layer):
        slot = LayerSlot(self.device, f"slot[{self.step + 1}]", layer_layout(CONFIG), torch.float32)
        ready = self.engine.upload(layer, slot)
        self.device.direct_queue.wait(self.engine.copied, ready)
        return slot.holding(layer)

    def release(self, layer):
        self.step += 1


CONFIG = (
    __import__("xinfer_lab.qwen2.synthetic", fromlist=["SyntheticSpec"]).SyntheticSpec(layers=6, hidden=64).config()
)
