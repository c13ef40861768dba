# SPDX-License-Identifier: Apache-2.0
"""The filter: its rules against a short model, at every speed, for frames of the stream and in place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import cocotb
from function_set_rig import INSTANCES, SetRig
from functions_rig import NOBODY, OUTSIDE


@dataclass
class Rule:
    """The required values of the first 64 bytes, at the bits of the mask."""

    match: bytes
    mask: bytes
    drop: bool
    enable: bool = True

    def matches(self, frame: bytes) -> bool:
        """Whether the rule matches; a byte beyond the frame's end matches no masked bits."""
        pairs = zip(self.match, self.mask, strict=True)
        return self.enable and all(
            not mask or (i < len(frame) and not (frame[i] ^ match) & mask) for i, (match, mask) in enumerate(pairs)
        )


async def install(rig: SetRig, rules: list[Rule], *, drop: bool) -> None:
    """Writes the rules, and waits until they take effect."""
    for number in range(8):
        await rig.functions.write("filter_rule", 0, number)
    for number, rule in enumerate(rules):
        for word in range(16):
            for name, content in (("filter_match", rule.match), ("filter_mask", rule.mask)):
                value = int.from_bytes(content[4 * word : 4 * word + 4], "little")
                await rig.functions.write(name, value, 16 * number + word)
    await rig.functions.write("filter_default", int(drop))
    await rig.functions.write("control", 2)
    cycles = rig.bench.cycles
    while await rig.functions.read("filter_state"):
        await rig.bench.cycle(200)
    assert rig.bench.cycles - cycles < 9000
    for number, rule in enumerate(rules):
        await rig.functions.write("filter_rule", rule.enable | rule.drop << 1, number)


def random_rule(rig: SetRig, like: bytes) -> Rule:
    """A rule about one byte, some bits, or many bytes of a frame."""
    draw = rig.bench.random
    mask = bytearray(64)
    kind = draw.randrange(5)
    places = range(64) if kind == 0 else draw.sample(range(64), (0, 1, 2, 5, 20)[kind])
    for at in places:
        mask[at] = draw.choice([0xFF, 0xF0, 1 << draw.randrange(8)])
    match = bytes(draw.getrandbits(8) & ~m | like[i] & m if i < len(like) else 0 for i, m in enumerate(mask))
    return Rule(match, bytes(mask), draw.random() < 0.5, draw.random() < 0.9)


def random_frame(rig: SetRig, rules: list[Rule]) -> bytes:
    """Usually a frame that matches a rule, or differs in one bit."""
    draw = rig.bench.random
    frame = bytearray(draw.randbytes(draw.choice([17, 33, 60, 63, 64, 65, 130])))
    if rules and draw.random() < 0.8:
        rule = draw.choice(rules)
        for i in range(min(64, len(frame))):
            frame[i] = frame[i] & ~rule.mask[i] | rule.match[i] & rule.mask[i]
        wanted = [i for i in range(min(64, len(frame))) if rule.mask[i]]
        if wanted and draw.random() < 0.4:
            frame[draw.choice(wanted)] ^= 1 << draw.randrange(8)
    return bytes(frame)


@cocotb.test()
async def the_first_rule_that_matches_decides(dut: Any) -> None:
    """Covers frames of the stream and in place, at two speeds."""
    for name, (count, _) in INSTANCES.items():
        rig = SetRig(dut, name, 20)
        await rig.begin()
        await rig.functions.write("receive", OUTSIDE)
        for default, idle, stall in ((False, 0.0, 0.0), (True, 0.3, 0.3)):
            rig.pace(idle, stall)
            like = rig.bench.random.randbytes(64)
            rules = [random_rule(rig, like) for _ in range(count)]
            await install(rig, rules, drop=default)
            await rig.functions.clear()
            frames = [random_frame(rig, rules) for _ in range(250)]
            shown = [random_frame(rig, rules) for _ in range(150)]
            for frame in frames:
                rig.give(frame)
            for frame in shown:
                rig.show(frame)

            def decided(frame: bytes) -> int:
                return next((i for i, rule in enumerate(rules) if rule.matches(frame)), 8)  # noqa: B023

            def dropped(frame: bytes) -> bool:
                number = decided(frame)
                return default if number == 8 else rules[number].drop  # noqa: B023

            pass_ = [frame for frame in frames if not dropped(frame)]
            await rig.bench.until(lambda: not rig.rx.items and len(rig.verdict.items) == len(shown))  # noqa: B023
            await rig.bench.until(lambda: len(rig.passed.update()) == len(pass_))  # noqa: B023
            assert [found for _, found in rig.passed.frames] == pass_
            assert [verdict.forward for verdict in rig.verdicts] == [not dropped(frame) for frame in shown]
            assert not any(verdict.replaced for verdict in rig.verdicts)
            counted = Counter(decided(frame) for frame in frames + shown)
            assert len(counted) > 2
            counters = await rig.functions.counters()
            assert counters.pop("as_they_are") == len(shown)
            assert counters.pop("filter_missed", 0) == counted.pop(8, 0)
            assert counters == {f"filter_hits[{i}]": n for i, n in counted.items()}
            rig.elsewhere.items.clear()
            rig.passed.forget()
            rig.verdict.items.clear()


@cocotb.test()
async def no_rule_matches_while_they_are_built(dut: Any) -> None:
    """Meanwhile the default decides."""
    rig = SetRig(dut, seed=21)
    await rig.begin()
    await rig.functions.write("receive", NOBODY)
    await install(rig, [Rule(bytes(64), bytes(64), drop=True)], drop=False)  # all frames
    rig.give(bytes(64))
    rig.show(bytes(64))
    await rig.bench.until(lambda: len(rig.verdict.items) == 1)
    assert not rig.verdicts[0].forward
    await rig.functions.write("control", 2)
    assert await rig.functions.read("filter_state") == 1
    for _ in range(50):
        rig.show(bytes(64))
    await rig.bench.until(lambda: len(rig.verdict.items) == 51)
    assert all(verdict.forward for verdict in rig.verdicts[1:])
    while await rig.functions.read("filter_state"):
        await rig.bench.cycle(200)
    rig.show(bytes(64))
    await rig.bench.until(lambda: len(rig.verdict.items) == 52)
    assert not rig.verdicts[-1].forward
    assert (await rig.functions.counters())["filter_missed"] == 50
