"""What the tests of the language model's layer share."""
import asyncio

import pytest
from llm_clients import NOW

from git_notes_consolidation.core.settings import SubconsciousnessConfig
from git_notes_consolidation.llm.client import Client


@pytest.fixture
def asking():
    "Makes clients that wait for nothing but the network, and closes them."
    made = []

    def make(*who, redact=None, **settings):
        more = {k: settings.pop(k) for k in ("cache_path", "replay", "record", "sleep") if k in settings} | ({"redact": redact} if redact else {})
        now, waited = [NOW], []

        async def sleep(seconds):
            waited.append(seconds)
            await asyncio.sleep(0)

        config = SubconsciousnessConfig(**{"llm_provider": "auto", "llm_timeout_s": 30.0} | settings)
        made.append(client := Client(config, who, **{"clock": lambda: now[0], "sleep": sleep} | more))
        client.now, client.waited = now, waited
        return client

    yield make
    for client in made: client.close()
