# SPDX-License-Identifier: Apache-2.0
"""Teaches: offloading numpy arrays from a time loop; two buffers, so that computing and moving overlap."""

import numpy as np

import wherry

ATOMS, STEPS = 100_000, 10


def main() -> None:
    """Moves a random walk, step by step."""
    random = np.random.default_rng(1)
    with wherry.Session() as session:
        print(session.info)
        # Memory that Wherry allocated is the cheapest source. Any other C-contiguous array works, too.
        buffers = [session.empty((ATOMS, 3), np.float32) for _ in range(2)]
        stream = session.stream("walk", {"position": buffers[0]})
        tickets: list[wherry.Ticket | None] = [None, None]
        for step in range(STEPS):
            mine, last = buffers[step % 2], buffers[(step + 1) % 2]
            earlier = tickets[step % 2]
            if earlier is not None:
                earlier.wait(10)  # this buffer was posted two steps ago
            np.add(last, random.standard_normal((ATOMS, 3), np.float32), out=mine)
            tickets[step % 2] = stream.offload({"position": mine}, tag=step)
        session.drain(10)
        final = tickets[(STEPS - 1) % 2]
        assert final is not None
        assert final.sequence == STEPS - 1
        print(f"frame {final.sequence}: {buffers[0].nbytes / 1e6:.1f} MB in {final.transfer_ns / 1e3:.0f} us")
        stream.close()


if __name__ == "__main__":
    main()
