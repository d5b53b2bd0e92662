"""A trigger of the configuration, and the rules that hold without a source."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Struct, UnsetType

from spectrod.lib.errors import ConfigError
from spectrod.lib.flag import flag
from spectrod.lib.names import check_name

TriggerKind = Literal["band", "bin", "mask", "tone", "tone-missing"]
MaskSide = Literal["above", "below"]

TRIGGERS_MAX = 64
"""Maximum number of triggers of a daemon."""
POINTS_MAX = 1000
"""Maximum number of points of a mask in the configuration."""
LEARNED_POINTS_MAX = 1 << 14
"""Maximum number of points of a learned mask."""

MASKS_FOLDER = "masks"
"""Folder of learned masks, in the state folder."""

RECORDER_TRIGGERS = ("level", "clipping", "silent", "missing", "stuck", "dc", "control")
"""Triggers that a recording has without a table of their own."""

PULSES_MIN = 3
"""Least number of pulses of a pattern where none is given."""
FALL_DB = 10.0
"""Fall from the highest level of a pulse to its end where none is given [dB]."""
PULSES_MAX = 1000
"""Largest least number of pulses of a pattern."""

OVER_FLOOR_DB: dict[TriggerKind, float] = {"band": 10.0, "bin": 15.0}
"""Threshold over the floor of stored sound if none is given: noise hardly reaches it [dB]."""

_DB_MAX = 200.0
_TIME_MAX_S = 86400.0
_PULSE_MAX_S = 3600.0
HOLD_OFF_MIN_S = 0.1
"""Shortest hold-off of a daemon's trigger [s]: it bounds the rate of its events."""
HOLD_OFF_WAITED_S = 60.0
"""Part of a hold-off for which recordings keep what may be the begin of an event [s]."""

_Number = float | UnsetType

_KEYS_OF: dict[TriggerKind, tuple[str, ...]] = {
    "band": ("threshold", "unit", "over_floor_db", "floor_s"),
    "bin": ("threshold", "unit", "over_floor_db", "floor_s"),
    "mask": ("points", "mask", "unit", "side"),
    "tone": ("prominence_db",),
    "tone-missing": ("prominence_db",),
}
"""Keys that only some kinds have, for each kind."""


class PulsePattern(Struct, frozen=True):
    """Pulses that make an event.

    Attributes
    ----------
    pulse_s, pause_s : (float, float)
        Shortest and longest pulse, and pause between two [s].
    pulses_min : int
        Least number of pulses.
    fall_db : float
        A pulse ends where it is that far below its highest level, too [dB].
    """

    pulse_s: tuple[float, float]
    pause_s: tuple[float, float]
    pulses_min: int
    fall_db: float

    @property
    def known_after_s(self) -> float:
        """Longest time from the begin of an event until it is known [s]."""
        n = self.pulses_min
        return n * self.pulse_s[1] + (n - 1) * self.pause_s[1]


class TriggerConfig(Struct, frozen=True):
    """A trigger of spectra; ``default.toml`` describes each key."""

    name: str
    kind: Annotated[
        TriggerKind, flag("", "what is examined (%(default)s)", choices=get_args(TriggerKind))
    ] = "band"
    sources: tuple[str, ...] = ()
    product: str = ""
    f_min_hz: (
        Annotated[float, flag("HZ", "lowest frequency (lowest)", name="f-min")] | UnsetType
    ) = UNSET
    f_max_hz: (
        Annotated[float, flag("HZ", "highest frequency (highest)", name="f-max")] | UnsetType
    ) = UNSET
    threshold: (
        Annotated[float, flag("LEVEL", "fixed threshold, in the unit of --unit")] | UnsetType
    ) = UNSET
    unit: Annotated[str, flag("UNIT", "of a fixed threshold, as dBFS or 'dB SPL'")] = ""
    over_floor_db: (
        Annotated[
            float, flag("DB", "threshold over the noise floor (%(default)s)", name="over-floor")
        ]
        | UnsetType
    ) = UNSET
    floor_s: Annotated[
        float, flag("TIME", "length of the noise floor (%(default)s)", name="floor")
    ] = 30.0
    points: tuple[tuple[float, float], ...] = ()
    mask: str = ""
    side: Annotated[MaskSide, flag("", "of a mask (%(default)s)", choices=get_args(MaskSide))] = (
        "above"
    )
    prominence_db: (
        Annotated[float, flag("DB", "of a tone, over the noise around it", name="prominence")]
        | UnsetType
    ) = UNSET
    release_db: Annotated[
        float,
        flag("DB", "an event ends so far below its threshold (%(default)s)", name="release"),
    ] = 3.0
    for_s: Annotated[
        float, flag("TIME", "least duration of an event (%(default)s)", name="for")
    ] = 0.0
    hold_off_s: Annotated[
        float,
        flag("TIME", "from an event to the begin of the next (%(default)s)", name="hold-off"),
    ] = 1.0
    pulse_s: (
        Annotated[
            tuple[float, float],
            flag(
                "LO..HI",
                "length of a pulse, as 0.3..0.7: events are series of pulses",
                name="pulse",
            ),
        ]
        | UnsetType
    ) = UNSET
    pause_s: (
        Annotated[tuple[float, float], flag("LO..HI", "from a pulse to the next", name="pause")]
        | UnsetType
    ) = UNSET
    pulses_min: Annotated[int, flag("N", "least number of pulses (%(default)s)", name="pulses")] = (
        PULSES_MIN
    )
    fall_db: Annotated[
        float,
        flag("DB", "a pulse ends so far below its highest level (%(default)s)", name="fall"),
    ] = FALL_DB

    @property
    def pattern(self) -> PulsePattern | None:
        """The pattern of a checked trigger; None without one."""
        if self.pulse_s is UNSET or self.pause_s is UNSET:
            return None
        return PulsePattern(self.pulse_s, self.pause_s, self.pulses_min, self.fall_db)

    @property
    def known_after_s(self) -> float:
        """Longest time from the begin of an event until it is known [s].

        One that begins within the hold-off of another one is known at its end. Of a longer hold-off
        a minute counts: who waits for an event keeps the data of that time in memory.
        """
        held_s = min(self.hold_off_s, HOLD_OFF_WAITED_S)
        if self.pattern is None:
            return max(self.for_s, held_s)
        return self.pattern.known_after_s + held_s

    def check(self) -> None:
        """Check what can be checked without the source.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        check_name("name of a trigger", self.name)
        if self.name in RECORDER_TRIGGERS:
            raise ConfigError(
                "is a trigger that each recording has; choose another name", name=self.name
            )
        self._check_keys()
        _within("release_db", self.release_db, 0.0, _DB_MAX, "it lies below the threshold")
        _within("for_s", self.for_s, 0.0, _TIME_MAX_S)
        _within("hold_off_s", self.hold_off_s, 0.0, _TIME_MAX_S)
        self._check_pulses()
        low_hz, high_hz = self.f_min_hz, self.f_max_hz
        if low_hz is not UNSET and high_hz is not UNSET and not low_hz < high_hz:
            raise ConfigError(f"must be below f_max_hz={high_hz:g}", "f_max_hz", f_min_hz=low_hz)
        self._check_reference()

    def check_live(self) -> None:
        """Check what holds for triggers of live sound alone; raises ConfigError."""
        rule = "it bounds the rate of events"
        _within("hold_off_s", self.hold_off_s, HOLD_OFF_MIN_S, _TIME_MAX_S, rule)

    def _check_keys(self) -> None:
        """Check that no key of another kind is set."""
        own = _KEYS_OF[self.kind]
        others = {key for keys in _KEYS_OF.values() for key in keys} - {*own}
        for field, default in zip(
            self.__struct_fields__[1:], self.__struct_defaults__, strict=True
        ):
            if field in others and getattr(self, field) != default:
                raise ConfigError(
                    f"{field}={getattr(self, field)!r}: is no key of kind={self.kind!r}, which has "
                    f"{', '.join(own)}",
                    field,
                    "kind",
                )

    def _check_pulses(self) -> None:
        """Check the pattern of pulses, if there is one."""
        if self.pulse_s is UNSET and self.pause_s is UNSET:
            if self.pulses_min != PULSES_MIN:
                raise ConfigError("needs pulse_s and pause_s", pulses_min=self.pulses_min)
            if self.fall_db != FALL_DB:
                raise ConfigError("needs pulse_s and pause_s", fall_db=self.fall_db)
            return
        for key, other in (("pulse_s", "pause_s"), ("pause_s", "pulse_s")):
            if getattr(self, key) is UNSET:
                raise ConfigError(f"must be given with {other}", other, **{key: ...})
            low, high = getattr(self, key)
            if not 0.0 <= low < high <= _PULSE_MAX_S:
                raise ConfigError(
                    f"{key}=[{low:g}, {high:g}]: must be two times from 0 to {_PULSE_MAX_S:g} s, "
                    "the shorter one first",
                    key,
                )
        if not 1 <= self.pulses_min <= PULSES_MAX:
            raise ConfigError(f"must be 1 to {PULSES_MAX}", pulses_min=self.pulses_min)
        _within("fall_db", self.fall_db, 3.0, _DB_MAX, "noise alone varies by less")
        if self.for_s:
            raise ConfigError("must be 0 with pulse_s, which has the length", for_s=self.for_s)

    def _check_reference(self) -> None:
        """Check what the levels are compared with."""
        if self.kind in ("tone", "tone-missing"):
            if self.prominence_db is UNSET:
                raise ConfigError(
                    f"must be given for kind={self.kind!r}", "kind", prominence_db=...
                )
            _within("prominence_db", self.prominence_db, 3.0, _DB_MAX, "noise alone exceeds less")
        elif self.kind == "mask":
            self._check_mask()
        else:
            self._check_level()

    def _check_level(self) -> None:
        if (self.threshold is UNSET) == (self.over_floor_db is UNSET):
            raise ConfigError(
                f"kind={self.kind!r} must have one of them, and not both",
                "kind",
                threshold=...,
                over_floor_db=...,
            )
        if self.over_floor_db is not UNSET:
            _within("over_floor_db", self.over_floor_db, 0.1, _DB_MAX)
            _within("floor_s", self.floor_s, 0.1, 3600.0)
            if self.unit:
                raise ConfigError(
                    "must be '' with over_floor_db, which is relative", unit=self.unit
                )
            return
        _within("threshold", self.threshold, -1000.0, 1000.0)
        self._require_unit("threshold")

    def _require_unit(self, of: str) -> None:
        if not self.unit:
            raise ConfigError(f"must name the unit of {of}, such as dBFS or dB SPL", unit="")

    def _check_mask(self) -> None:
        if bool(self.points) == bool(self.mask):
            raise ConfigError(
                "kind='mask' must have one of them, and not both", "kind", points=..., mask=...
            )
        if self.mask:
            check_mask_name(self.mask)
            if self.unit:
                raise ConfigError("must be '' with mask, whose file has it", unit=self.unit)
            return
        check_points(self.points, POINTS_MAX)
        self._require_unit("points")


def of_stored_sound(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys of a trigger of stored sound, with its own defaults.

    Without a threshold it has ``OVER_FLOOR_DB``. Without a hold-off it has none: nobody is to be
    spared events of a recording.
    """
    kind = table.get("kind", "band")
    keys = {"hold_off_s": 0.0, **table}
    if kind in OVER_FLOOR_DB and not table.keys() & {"threshold", "over_floor_db"}:
        return {"over_floor_db": OVER_FLOOR_DB[kind], **keys}
    return keys


def check_mask_name(name: str) -> str:
    """Return the name of a learned mask if it is valid as that of a file; else ConfigError."""
    check_name("mask", name)
    if not name[0].isalnum():
        raise ConfigError("must begin with a letter or digit", mask=name)
    return name


def check_points(points: Sequence[tuple[float, float]], limit: int) -> None:
    """Check the points of a mask: two or more, finite, of ascending frequencies above 0 Hz.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """
    if not 2 <= len(points) <= limit:
        raise ConfigError(f"{len(points)} points: must be 2 to {limit}", points=...)
    last_hz = 0.0
    for n, (f_hz, level) in enumerate(points, 1):
        if not (math.isfinite(f_hz) and abs(level) <= 1000.0):
            raise ConfigError(
                f"number {n}, [{f_hz:g}, {level:g}]: must be a frequency in Hz and a level "
                "of -1000 to 1000",
                points=...,
            )
        if f_hz <= last_hz:
            rule = f"above {last_hz:g} Hz, that of the point before" if n > 1 else "above 0 Hz"
            raise ConfigError(f"number {n}, [{f_hz:g}, {level:g}]: must be {rule}", points=...)
        last_hz = f_hz


def _within(key: str, value: float | UnsetType, low: float, high: float, why: str = "") -> None:
    assert value is not UNSET
    if not low <= value <= high:
        because = f": {why}" if why else ""
        raise ConfigError(f"{key}={value:g}: must be {low:g} to {high:g}{because}", key)
