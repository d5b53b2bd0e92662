"""Home Assistant with its MQTT integration alone; a Python that has it runs this.

Arguments: the port of a broker, and an empty folder. For each message on ``asked``, whose payload
has names of entities by their ids, it renames them, and prints all entities and devices as a line
of JSON. A message that is there before all others is answered when Home Assistant listens.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path
from types import MappingProxyType

from homeassistant import bootstrap, loader
from homeassistant.components import mqtt
from homeassistant.components.mqtt.config_flow import FlowHandler
from homeassistant.config_entries import ConfigEntries, ConfigEntry
from homeassistant.core import HomeAssistant
from homeassistant.helpers import device_registry, entity_registry


async def started(port: int, folder: str) -> HomeAssistant:
    """Start an instance that reads discovery messages of a broker."""
    house = HomeAssistant(folder)
    house.config.skip_pip = True
    house.config_entries = ConfigEntries(house, {})
    loader.async_setup(house)
    await bootstrap.async_load_base_functionality(house)
    for name in ("http", "file_upload"):  # for the form of its settings
        house.config.components.add(name)
    entry = ConfigEntry(
        domain="mqtt",
        data={"broker": "127.0.0.1", "port": port},
        version=FlowHandler.VERSION,
        minor_version=FlowHandler.MINOR_VERSION,
        discovery_keys=MappingProxyType({}),
        options={},
        source="user",
        subentries_data=(),
        title="broker",
        unique_id=None,
    )
    await house.config_entries.async_add(entry)
    await house.async_start()
    return house


def found(house: HomeAssistant) -> dict:
    """Return devices, and entities by unique id: registered as what, named how, whether loaded."""
    entities = {}
    for one in entity_registry.async_get(house).entities.values():
        state = house.states.get(one.entity_id)
        is_loaded = state is not None and not state.attributes.get("restored")
        entities[one.unique_id] = [one.id, one.entity_id, one.name, is_loaded]
    devices = [one.name for one in device_registry.async_get(house).devices.values()]
    return {"entities": entities, "devices": devices}


async def main(port: int, folder: str) -> None:
    """Answer until the process is killed."""
    house = await started(port, folder)
    asked: asyncio.Queue[str] = asyncio.Queue()
    await mqtt.async_subscribe(house, "asked", lambda message: asked.put_nowait(message.payload))
    while True:
        names = json.loads(await asked.get())
        await house.async_block_till_done()
        for entity_id, name in names.items():
            entity_registry.async_get(house).async_update_entity(entity_id, name=name)
        sys.stdout.write(json.dumps(found(house)) + "\n")
        sys.stdout.flush()


logging.basicConfig(level=logging.WARNING)
Path(sys.argv[2], "configuration.yaml").touch()
asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
