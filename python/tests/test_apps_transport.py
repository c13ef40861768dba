# SPDX-License-Identifier: Apache-2.0
"""apps/transport against analytic solutions, and against its own results on other numbers of ranks."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from apps import ALONE, JOBS, Outcome, execute, run_app

ALL_IN_ONE: tuple[object, ...] = ("--cells", "16,8,4", "--size", "8,4,3", "--boundary", "vacuum,reflect,vacuum")
ALL_IN_ONE += ("--absorb", 0.1, "--scatter", 0.6, "--fission", 0.05, "--steps", 5, "--step-time", 1.5)


def field(out: Outcome, name: str, cells: int) -> np.ndarray:
    """One value for each cell of the mesh, combined from the files of all ranks."""
    whole = np.zeros(cells, np.uint64)
    seen = np.zeros(cells, int)
    for cell, values in zip(out.parts(".cell.npy"), out.parts(f".{name}.npy"), strict=True):
        whole[cell.astype(np.int64)] = values
        seen[cell.astype(np.int64)] += 1
    assert (seen == 1).all()
    return whole


def test_any_ranks_expect_the_same_bits(tmp_path: Path) -> None:
    results = []
    for job in JOBS:
        directory = tmp_path / f"{job[0]}x{job[1]}"
        directory.mkdir()
        out = run_app(directory, "transport", *ALL_IN_ONE, "--particles", 5000, job=job)
        counts = {key: value for key, value in out.json.items() if key in TALLIES}
        results.append((counts, field(out, "flux", 512), field(out, "collisions", 512), out.json["checksum"]))
    counts, flux, collisions, checksum = results[0]
    assert flux.all()
    for other in results[1:]:
        assert other[0] == counts
        np.testing.assert_array_equal(other[1], flux)
        np.testing.assert_array_equal(other[2], collisions)
        assert other[3] == checksum


TALLIES = ["emitted", "born", "captured", "fissions", "scattered", "escaped", "in_flight", "facets", "track_length"]


@pytest.mark.parametrize("job", [ALONE, (2, 2)])
def test_particles_expect_the_exact_balance(tmp_path: Path, job: tuple[int, int]) -> None:
    out = run_app(tmp_path, "transport", *ALL_IN_ONE, "--particles", 3000, job=job)
    j = out.json
    assert j["emitted"] == 15_000
    assert min(j["born"], j["in_flight"], j["fissions"]) > 100
    assert j["emitted"] + j["born"] == j["captured"] + j["fissions"] + sum(j["escaped"]) + j["in_flight"]
    assert j["escaped"][2:4] == [0, 0]
    assert field(out, "collisions", 512).sum() == j["captured"] + j["fissions"] + j["scattered"]
    flux = field(out, "flux", 512).sum()
    assert j["track_length"] == pytest.approx(flux * j["track_unit"], rel=1e-12)


@pytest.mark.parametrize(("sigma", "job"), [(0.05, ALONE), (0.5, ALONE), (0.5, (2, 2))])
def test_absorbing_slab_expect_exponential_transmission(tmp_path: Path, sigma: float, job: tuple[int, int]) -> None:
    n, thickness = 50_000, 4.0
    slab = ("--cells", "16,4,4", "--size", f"{thickness},1,1", "--boundary", "vacuum,reflect,reflect")
    out = run_app(
        tmp_path, "transport", *slab, "--source", "beam", "--absorb", sigma, "--scatter", 0, "--particles", n, job=job
    )
    through = math.exp(-sigma * thickness)
    assert abs(out.json["escaped"][1] / n - through) < 4 * math.sqrt(through * (1 - through) / n)
    assert out.json["escaped"][1] + out.json["captured"] == n
    # The same holds in every layer: a particle that enters it collides there with a probability of 1 - exp(-sigma dx).
    layers = field(out, "collisions", 256).reshape(4, 4, 16).sum(axis=(0, 1))
    expected = n * np.exp(-sigma * thickness * np.arange(16) / 16) * -np.expm1(-sigma * thickness / 16)
    assert (np.abs(layers - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("job", [ALONE, (1, 2)])
def test_infinite_medium_expect_flux_of_source_over_absorption(tmp_path: Path, job: tuple[int, int]) -> None:
    n, absorb, scatter = 200_000, 0.3, 0.7
    box = ("--cells", "6,6,6", "--size", "3,3,3", "--boundary", "reflect,reflect,reflect")
    out = run_app(tmp_path, "transport", *box, "--absorb", absorb, "--scatter", scatter, "--particles", n, job=job)
    assert out.json["captured"] == n
    # The track length of a particle is exponential, so its standard deviation equals its mean, 1 / absorb.
    mean = out.json["track_length"] / n
    assert abs(mean - 1 / absorb) < 4 / absorb / math.sqrt(n)
    assert out.json["flux"] == pytest.approx(mean / 27)
    assert abs(out.json["scattered"] / n - scatter / absorb) < 4 * math.sqrt(scatter / absorb / absorb / n)
    # The flux is the same in all cells. Few particles cross a cell, but each does so often, so its noise is about 7 /
    # sqrt(n).
    deviation = field(out, "flux", 216) * out.json["track_unit"] / out.json["track_length"] * 216 - 1
    assert deviation.std() * math.sqrt(n) < 9
    assert abs(deviation).max() < 5 * deviation.std()


@pytest.mark.parametrize("job", [ALONE, (1, 2)])
def test_multiplying_medium_expect_its_multiplication(tmp_path: Path, job: tuple[int, int]) -> None:
    n, absorb, fission, neutrons = 20_000, 0.3, 0.1, 2.0
    box = ("--cells", "4,4,4", "--boundary", "reflect,reflect,reflect", "--neutrons", neutrons)
    out = run_app(
        tmp_path, "transport", *box, "--absorb", absorb, "--scatter", 0, "--fission", fission, "--particles", n, job=job
    )
    # Each particle has k = neutrons * fission / (fission + absorb) successors, so there are 1 / (1 - k) particles in
    # total.
    k = neutrons * fission / (fission + absorb)
    lives = (out.json["emitted"] + out.json["born"]) / n
    assert lives == pytest.approx(1 / (1 - k), rel=0.05)
    assert out.json["born"] == 2 * out.json["fissions"]


def test_too_many_ranks_for_the_mesh_expect_why() -> None:
    done = execute("transport", "--cells", "1,1,1", job=(2, 2))
    assert done.returncode == 1
    assert "1 x 1 x 1 cells cannot be cut into 4 boxes" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cells", "4,4"), "--cells"),
        (("--cells", "0,4,4"), "--cells"),
        (("--size", "nan,4,4"), "--size: want a number from 1e-06 to 1000000000, not 'nan'"),
        (("--boundary", "open,vacuum,vacuum"), "--boundary"),
        (("--absorb", "-1"), "--absorb: want a number from 0 on, not '-1'"),
        (("--step-time", "0"), "--step-time"),
    ],
)
def test_wrong_options_expect_their_names(arguments: tuple[str, str], message: str) -> None:
    done = execute("transport", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
