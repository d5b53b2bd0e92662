"""Audio inputs: lasting names, selection, and the search after a loss, in trees like sysfs."""

import pytest

from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.source.soundcard.alsa_cards import Card, OpenCapture, open_captures, read_card
from spectrod.source.soundcard.devices import (
    InputDevice,
    choose_input,
    describe_inputs,
    lasting_selector,
    parse_selector,
)

HW_PARAMS = """access: RW_INTERLEAVED
format: S16_LE
subformat: STD
channels: 2
rate: 48000 (48000/1)
period_size: 480
buffer_size: 1920
"""
STATUS = """state: RUNNING
owner_pid   : 4711
trigger_time: 81452.123456789
tstamp      : 0.000000000
delay       : 312
avail       : 312
avail_max   : 480
-----
hw_ptr      : 18263832
appl_ptr    : 18263520
"""


def scanned(index, name, host_api="ALSA", channels=2, *, is_default=False):
    return {
        "index": index,
        "name": name,
        "host_api": host_api,
        "channels": channels,
        "samplerate": 44100.0,
        "is_default": is_default,
    }


@pytest.fixture
def sys_root(tmp_path):
    """Build a tree like sysfs, with links from class to device and from card to parent."""
    (tmp_path / "sys/class/sound").mkdir(parents=True)
    return tmp_path / "sys"


def add_card(sys_root, number, card_id, parent):
    card = sys_root / "devices" / parent / "sound" / f"card{number}"
    card.mkdir(parents=True)
    (card / "id").write_text(f"{card_id}\n")
    (card / "number").write_text(f"{number}\n")
    (card / "device").symlink_to("../..")
    (sys_root / f"class/sound/card{number}").symlink_to(card)


def add_usb_card(sys_root, number, card_id, port, serial=None):
    device = sys_root / "devices/pci0000:00/0000:00:14.0/usb1" / port
    device.mkdir(parents=True)
    (device / "idVendor").write_text("2752\n")
    (device / "idProduct").write_text("0007\n")
    if serial is not None:
        (device / "serial").write_text(f"{serial}\n")
    add_card(sys_root, number, card_id, device.relative_to(sys_root / "devices") / f"{port}:1.0")


# ---- data from the kernel


def test_cards_of_each_bus(sys_root):
    """A PCI card has an id; a USB card has a port and, if it reports one, a serial number."""
    add_card(sys_root, 0, "PCH", "pci0000:00/0000:00:1f.3")
    add_usb_card(sys_root, 1, "UMIK1", "1-1.2", "00000123")
    add_usb_card(sys_root, 2, "Device", "1-4")
    add_usb_card(sys_root, 3, "Device_1", "1-5", "000000000000")
    assert [read_card(number, sys_root) for number in range(5)] == [
        Card("PCH"),
        Card("UMIK1", "1-1.2", "00000123"),
        Card("Device", "1-4"),
        Card("Device_1", "1-5"),
        Card(),
    ]


def test_open_captures(tmp_path):
    """Open capture devices are listed with their settings, others are not."""
    asound = tmp_path / "asound"
    for folder, status, hw_params in (
        ("card0/pcm0c/sub0", "closed\n", "closed\n"),
        ("card0/pcm0p/sub0", STATUS, HW_PARAMS),
        ("card1/pcm0c/sub0", "closed\n", "closed\n"),
        ("card1/pcm0c/sub1", STATUS, HW_PARAMS),
        ("card10/pcm2c/sub0", "state: OPEN\nowner_pid   : 12\n", "no setup\n"),
    ):
        (asound / folder).mkdir(parents=True)
        (asound / folder / "status").write_text(status)
        (asound / folder / "hw_params").write_text(hw_params)
        (asound / folder).parent.joinpath("info").write_text("card: 1\nname: USB Audio\nid: x\n")
    (asound / "cards").write_text(
        " 0 [PCH            ]: HDA-Intel - HDA Intel PCH\n"
        "                      HDA Intel PCH at 0xf7d10000 irq 30\n"
        " 1 [UMIK1          ]: USB-Audio - UMIK-1\n"
        "                      miniDSP UMIK-1 at usb-0000:00:14.0-1.2, full speed\n"
    )
    assert open_captures(tmp_path) == [
        OpenCapture(1, 0, "UMIK-1: USB Audio (hw:1,0)", 2, 48000, "S16_LE", 4711),
        OpenCapture(10, 2, "card 10: USB Audio (hw:10,2)", pid=12),
    ]
    assert open_captures(tmp_path / "absent") == []


# ---- lasting names


def test_each_input_gets_the_form_that_lasts_longest(sys_root):
    """An input is named by serial number, port, ALSA id or PortAudio name, the first unique one."""
    add_card(sys_root, 0, "PCH", "pci0000:00/0000:00:1f.3")
    add_usb_card(sys_root, 1, "UMIK1", "1-1", "7001234")
    add_usb_card(sys_root, 2, "Twin", "1-2", "same")
    add_usb_card(sys_root, 3, "Twin_1", "1-3", "same")
    add_usb_card(sys_root, 4, "Many", "1-4")
    inputs = describe_inputs(
        [
            scanned(0, "HDA Intel PCH: ALC254 Analog (hw:0,0)"),
            scanned(2, "HDA Intel PCH: ALC254 Alt Analog (hw:0,2)"),
            scanned(3, "UMIK-1: USB Audio (hw:1,0)"),
            scanned(4, "Twin: USB Audio (hw:2,0)"),
            scanned(5, "Twin: USB Audio (hw:3,0)"),
            scanned(6, "Many: USB Audio (hw:4,0)"),
            scanned(7, "Many: USB Audio #1 (hw:4,1)"),
            scanned(8, "pulse"),
            scanned(9, "pulse of the other room"),
            scanned(10, "system", "JACK Audio Connection Kit"),
            scanned(11, "same, (name)"),
            scanned(12, "same, (name)"),
            scanned(13, "left,right=1"),
        ],
        sys_root,
    )
    assert [device.uri for device in inputs] == [
        "soundcard:card=PCH,device=0",
        "soundcard:card=PCH,device=2",
        "soundcard:serial=7001234",
        "soundcard:usb=1-2",
        "soundcard:usb=1-3",
        "soundcard:usb=1-4,device=0",
        "soundcard:usb=1-4,device=1",
        "soundcard:api=ALSA,name=pulse",
        "soundcard:api=ALSA,name=pulse of the other room",
        "soundcard:api=JACK Audio Connection Kit,name=system",
        "soundcard:11",
        "soundcard:12",
        "soundcard:13",
    ]
    for device in inputs:
        assert choose_input(lasting_selector(device), inputs) == device
        assert choose_input(parse_selector(device.uri.removeprefix("soundcard:")), inputs) == device


def test_hardware_without_sysfs_is_named_without_numbers(sys_root):
    """Without sysfs a card has its name without the numbers that change."""
    (device,) = describe_inputs([scanned(0, "UMIK-1: USB Audio (hw:1,0)")], sys_root)
    assert device.uri == "soundcard:api=ALSA,name=UMIK-1: USB Audio"
    (moved,) = describe_inputs([scanned(5, "UMIK-1: USB Audio (hw:3,0)")], sys_root)
    assert choose_input(lasting_selector(device), [moved]) == moved


def test_lost_card_is_found_at_another_number(tmp_path):
    """A USB card that returns with another number on another port is found by its serial."""
    before, after = tmp_path / "before", tmp_path / "after"
    for root, number, port in ((before, 1, "1-1"), (after, 7, "1-3.4")):
        (root / "class/sound").mkdir(parents=True)
        add_usb_card(root, number, f"Card{number}", port, "A1B2")
    (lost,) = describe_inputs([scanned(0, "USB: Audio (hw:1,0)", is_default=True)], before)
    others = [scanned(0, "default", is_default=True), scanned(1, "USB: Audio (hw:7,0)")]
    assert choose_input(lasting_selector(lost), describe_inputs(others, after)).index == 1


@pytest.mark.parametrize("name", ["pulse", "UMIK-1: USB Audio (hw:1,0)", "left,right=1"])
def test_lost_input_is_not_taken_for_another(sys_root, name):
    """An input that merely contains the lost name or has its index is not the lost one."""
    (lost,) = describe_inputs([scanned(2, name)], sys_root)
    others = describe_inputs([scanned(1, f"{name[:10]}, other"), scanned(2, "else")], sys_root)
    with pytest.raises(UnavailableError, match="no such audio input"):
        choose_input(lasting_selector(lost), others)
    back = describe_inputs([scanned(0, f"{name}, other"), scanned(4, name)], sys_root)
    assert choose_input(lasting_selector(lost), back).index == 4


def test_twins_are_distinguished_by_their_index_only(sys_root):
    """The one of two inputs of one name with the lost index is preferred, else either is."""
    first, second = describe_inputs([scanned(3, "twin"), scanned(4, "twin")], sys_root)
    assert choose_input(lasting_selector(second), [first, second]) == second
    assert choose_input(lasting_selector(second), [first]) == first


def test_inputs_in_use_are_listed_though_portaudio_leaves_them_out(sys_root):
    """An input that a program has open, which PortAudio omits, is listed once."""
    add_usb_card(sys_root, 1, "UMIK1", "1-1", "7001234")
    listed = scanned(0, "Loop: A (hw:0,0)")
    used = [
        OpenCapture(1, 0, "UMIK-1: USB Audio (hw:1,0)", 1, 48000, "S24_3LE", 99),
        OpenCapture(0, 0, "Loop: A (hw:0,0)", 2, 48000, "S16_LE", 98),
    ]
    inputs = describe_inputs([listed], sys_root, used)
    assert [(device.index, device.channels, device.uri) for device in inputs] == [
        (0, 2, "soundcard:api=ALSA,name=Loop: A"),
        (-1, 1, "soundcard:serial=7001234"),
    ]


# ---- selection

INPUTS = [
    InputDevice(index, name, api, 2, 48000.0, is_default=index == 4, **card)
    for index, name, api, card in (
        (0, "HDA Intel: ALC254 (hw:0,0)", "ALSA", {"card_id": "PCH", "card_device": 0}),
        (1, "HDA Intel: ALC254 Alt (hw:0,2)", "ALSA", {"card_id": "PCH", "card_device": 2}),
        (4, "UMIK-1: USB Audio", "ALSA", {"usb_path": "1-1.2", "serial": "7AbC"}),
        (6, "pulse monitor", "ALSA", {}),
        (7, "Pulse", "ALSA", {}),
        (9, "system", "JACK Audio Connection Kit", {}),
    )
]


@pytest.mark.parametrize(
    ("selector", "index"),
    [
        ("", 4),
        ("hda", 0),
        ("0", 0),
        ("4", 4),
        ("umik", 4),
        ("25", 0),
        ("pulse", 7),
        ("pulse m", 6),
        ("card=pch,device=2", 1),
        ("card=PCH", 0),
        ("usb=1-1.2", 4),
        ("serial=7abc", 4),
        ("api=jack", 9),
        ("api=ALSA,name=pulse", 7),
        ("name=pulse", 7),
        ("name=HDA Intel: ALC254 Alt (hw:0,2)", 1),
        ("name=alc254,device=2", 1),
    ],
)
def test_inputs_are_chosen(selector, index):
    """An input is selected by index, by name (exact before partial), or by keys that all match."""
    assert choose_input(parse_selector(selector), INPUTS).index == index


def test_first_input_serves_where_none_is_the_default():
    """Without a default input the first one is used."""
    assert choose_input(parse_selector(""), INPUTS[:2]).index == 0


@pytest.mark.parametrize(
    "selector", ["x", "12", "card=PCH,device=1", "usb=1-1", "serial=7", "api=OSS"]
)
def test_unknown_inputs_list_the_inputs(selector):
    """An unknown input is refused with a list of inputs; ports and serials match only whole."""
    match = rf"^soundcard:{selector}: no such audio input; there are 0 'HDA .*, 4 'UMIK"
    with pytest.raises(UnavailableError, match=match):
        choose_input(parse_selector(selector), INPUTS)


def test_no_input_at_all():
    """A machine without inputs gives an error that says so."""
    with pytest.raises(UnavailableError, match=r"^soundcard: no audio input on this machine$"):
        choose_input(parse_selector("pulse"), [])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("colour=red", "colour: must be one of api, name, card, device, usb, serial"),
        ("card=PCH,colour=red", "colour: must be one of"),
        ("card=PCH,device=x", "device=x: must be a number"),
        ("card=,device=0", "card: must have a value"),
        ("card=A,card=B", "card: must be there only once"),
    ],
)
def test_bad_keys(text, rule):
    """A key that is unknown, empty, repeated or not a number is refused with the rule."""
    with pytest.raises(ConfigError, match=f"^soundcard:{text}: {rule}"):
        parse_selector(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "soundcard"),
        ("pulse", "pulse"),
        ("UMIK-1: USB", "UMIK-1-USB"),
        ("serial=7AbC", "serial-7AbC"),
        ("card=PCH,device=0", "card-PCH-device-0"),
    ],
)
def test_topics_are_named_by_the_selection(text, name):
    """Topics are named by the selection and not by the device, so they stay the same."""
    assert parse_selector(text).topic_name() == name
