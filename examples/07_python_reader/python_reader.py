# SPDX-License-Identifier: Apache-2.0
"""Teaches: reading on the agent's machine without a copy. Frames from wherry.open lie in the agent's memory."""

import numpy as np

import wherry


def main() -> None:
    """Writes three frames, reads them back, follows the stream to its end."""
    with wherry.Session() as session:
        x = np.linspace(0.0, 1.0, 1_000_000)
        stream = session.stream("x", {"x": x})
        for step in range(3):
            # The next step changes x, so wait until the agent has read it. Example 06 overlaps both with two buffers.
            stream.offload({"x": x}, tag=step).wait(10)
            x += 1.0
        stream.close()

        # Any process of this user can read this way, with the path of the session file in place of the session.
        frames = 0
        for frame in wherry.open("x", agent=session, timeout=10):
            column = frame.batch.column("x").to_numpy(zero_copy_only=True)  # read-only view; raises if it had to copy
            assert frame.tag == frame.sequence == frames
            assert column[0] == frame.tag
            assert column[-1] == frame.tag + 1.0
            print(f"frame {frame.sequence}: {frame.rows} rows at {column.ctypes.data:#x}, mean {column.mean():.3f}")
            frames += 1
        assert frames == 3


if __name__ == "__main__":
    main()
