"""The centre frequency of I/Q samples: in spectra, messages, pictures and configuration."""

import re

import numpy as np
import pytest

import spectrod
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.apps.view.axes import frequency_axis
from spectrod.config import config
from spectrod.daemon.publisher.queue import QueuedFrame
from spectrod.daemon.publisher.topic_encoder import TopicEncoder
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.description import Description
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixel_levels import value_spans
from spectrod.formats.segment.header import Header, Place, decode_header, encode_header
from spectrod.lib.errors import ConfigError
from spectrod.source.open_source import open_source
from spectrod.wire.schema import decode

FS, CENTER_HZ = 2.048e6, 433.92e6
SPEC = SpectrumSpec(FS, 2, win_length=256, nfft=256, iq=True, center_frequency_hz=CENTER_HZ)


@pytest.mark.parametrize("nfft", [256, 255])
def test_a_tone_is_found_at_its_radio_frequency(nfft):
    """The frequency axis of a spectrum of even or odd length includes the centre frequency."""
    x = np.exp(2j * np.pi * 30 / nfft * np.arange(4 * nfft))
    settings = {"win_length": nfft, "nfft": nfft, "engine": "numpy"}
    spectra = spectrod.spectrogram(x, FS, center_frequency_hz=CENTER_HZ, **settings)
    assert spectra.f[spectra.values[:, 0].argmax()] == CENTER_HZ + 30 * FS / nfft
    assert spectra.f[nfft // 2] == CENTER_HZ
    with spectrod.Stft(FS, iq=True, center_frequency_hz=CENTER_HZ, **settings) as stft:
        np.testing.assert_array_equal(stft.spec.frequencies, spectra.f)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iq": False}, "center_frequency_hz=433920000: needs I/Q samples"),
        ({"center_frequency_hz": 1.1e12}, "center_frequency_hz=1100000000000.0: must be"),
        ({"center_frequency_hz": np.nan}, "center_frequency_hz=nan: must be a frequency within"),
        ({"center_frequency_hz": "433M"}, "center_frequency_hz=433M: must be a frequency within"),
    ],
)
def test_an_invalid_centre_frequency_is_refused(settings, message):
    """A centre frequency must be a number of Hz and needs I/Q samples."""
    settings = {"iq": True, "center_frequency_hz": CENTER_HZ} | settings
    with pytest.raises(ConfigError, match=re.escape(message)):
        SpectrumSpec(FS, 2, **settings)


def test_messages_have_the_centre_frequency():
    """Header and description of a message give each value the frequency that the analysis gives."""
    stream = TopicEncoder("radio", (), SPEC, "numpy")
    (batch,) = FrameStream(SPEC, NumpyEngine()).push(Block(np.ones((2, 256), np.float32), 0, 0, 0))
    header = stream.headers(QueuedFrame(batch, 0, 0, 0), 1)[0]
    frame = decode([b"spec/radio/0/density/", header, batch.values[0, 0].tobytes()])
    assert frame.header.center_frequency_hz == CENTER_HZ
    np.testing.assert_array_equal(frame.f, SPEC.frequencies)
    meta = decode(stream.description("meta/radio/0/density/", 0, 1, "a receiver"))
    assert meta.header.center_frequency_hz == CENTER_HZ
    np.testing.assert_array_equal(meta.f, SPEC.frequencies)


def test_segments_keep_it():
    """A segment's header stores the centre frequency, and headers without it can still be read."""
    about = Header(Description(SPEC, "radio", ("0",), "spectrod"), Place(1), 0, 0)
    payload = encode_header(about)
    assert decode_header(payload).description.spec == SPEC
    earlier = payload.replace(b', "center_frequency_hz": 433920000.0', b"")
    assert earlier != payload
    assert decode_header(earlier).description.spec.center_frequency_hz == 0.0


def test_pictures_have_an_axis_in_mhz():
    """A picture has an absolute axis, and each bin lies in the row of its radio frequency."""
    axis = PictureOptions().frequency_axis(SPEC)
    assert (axis.lo_hz, axis.hi_hz) == (CENTER_HZ - FS / 2, CENTER_HZ + FS / 2)
    labels = next(axis.candidates(5))
    assert labels.title == "MHz"
    assert [tick.label for tick in labels.ticks] == ["433.0", "433.5", "434.0", "434.5"]
    first, stop = value_spans(SPEC, axis.edges(256))
    assert (first[30], stop[30]) == (30, 32)  # half a bin lower: rows end between two bins
    near = PictureOptions(f_min=433.9e6, f_max=433.94e6).frequency_axis(SPEC)
    labels = list(near.candidates(2))[-1]
    assert [tick.label for tick in labels.ticks] == ["433.9", "433.94"]
    with pytest.raises(ConfigError, match=r"f_max=500000: must be 432896001 to 434944000 Hz"):
        PictureOptions(f_max=500e3).frequency_axis(SPEC)


@pytest.mark.parametrize(
    ("hi_hz", "title"), [(1.0e6, "kHz"), (2.4e9, "MHz"), (10.5e9, "GHz"), (1500.0, "Hz")]
)
def test_units_of_a_linear_axis(hi_hz, title):
    """A linear axis has the unit that suits its highest frequency."""
    fs = 1000.0
    spec = SpectrumSpec(fs, 2, iq=True, center_frequency_hz=hi_hz - fs / 2)
    assert next(PictureOptions().frequency_axis(spec).candidates(5)).title == title


def test_the_live_view_counts_from_it():
    """Labels of the live view have enough digits to differ; columns are those of the baseband."""
    axis = frequency_axis(FS, 256, 80, -128, center_hz=CENTER_HZ)
    labels = dict(axis.ticks())
    assert list(labels.values()) == ["433M", "433.5M", "434M", "434.5M"]
    assert axis.column(CENTER_HZ) == 40
    np.testing.assert_array_equal(axis.bounds, frequency_axis(FS, 256, 80, -128).bounds)
    near = frequency_axis(FS, 256, 80, -128, (0.5, 0.51), CENTER_HZ)
    assert len(set(dict(near.ticks()).values())) == len(near.ticks()) > 2


def test_it_is_configured_with_a_unit(tmp_path):
    """Text may give the frequency a unit; a source without I/Q refuses a centre frequency."""
    path = tmp_path / "x.cu8"
    path.write_bytes(bytes(100))
    given = {"uri": f"pcm:{path}", "format": "cu8", "center_frequency_hz": "433.92M"}
    settings = config.load(None, {"source": given}).source
    assert settings.center_frequency_hz == CENTER_HZ
    assert open_source(settings).center_frequency_hz == CENTER_HZ
    settings = config.load(None, {"source": given | {"format": "u8"}}).source
    with pytest.raises(ConfigError, match=r"source\.center_frequency_hz=433920000: needs I/Q"):
        open_source(settings)
    with pytest.raises(ConfigError, match=r"center_frequency_hz='433\.92X': must be a frequency"):
        config.load(None, {"source": given | {"center_frequency_hz": "433.92X"}})
