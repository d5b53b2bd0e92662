"""Small archives for tests: numbered samples in files that say when they begin."""

import datetime as dt

import numpy as np
import soundfile

from spectrod.apps.batch.job import Deployment, Job

FS = 1000
BEGIN = dt.datetime(2026, 5, 1, 23, 50, tzinfo=dt.UTC)


def sound(n, seed=1, channels=1):
    """Return noise, (n, channels) int16."""
    return np.random.default_rng(seed).integers(-9000, 9000, (n, channels), np.int16)


def write(folder, samples, begin_s=0.0, fs=FS, suffix=".wav", **name):
    """Write samples to a file that is named by its begin, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = BEGIN + dt.timedelta(seconds=begin_s)
    path = folder / f"{name.get('prefix', '')}{begin:%Y%m%d_%H%M%S}{suffix}"
    soundfile.write(path, samples, fs, subtype="PCM_16")
    return path


def job_of(tmp_path, folder, unit="day", **settings):
    """Return a job of one deployment."""
    deployment = {key: settings.pop(key) for key in list(settings) if key in _OF_DEPLOYMENT}
    one = Deployment(name="north", inputs=(str(folder),), **deployment)
    found = {"products": ("millidecade", "levels", "flags"), "engine": "numpy"} | settings
    return Job(
        name="test", output=str(tmp_path / "results"), deployments=(one,), unit=unit, **found
    )


_OF_DEPLOYMENT = Deployment.__struct_fields__
