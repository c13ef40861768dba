# SPDX-License-Identifier: Apache-2.0
"""Reading: against a scripted agent (leases, faults), a Flight server of pyarrow's, and a real agent where it was built."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from tests_support import TOKEN, Agent, LocalAgent
from wherry import reader, sessionfile
from wherry.errors import DeadlineExceeded, Error, NotFound, PermissionDenied, Unavailable, VersionMismatch
