import asyncio
import websockets
import json
from datetime import datetime

class ParallaxAgent:
    async def connect(self):
        headers = {'Authorization': f'Bearer {self.token}'}
        async with websockets.connect(
            'wss://parallax.example.com/ws/agent',
            extra_headers=headers
        ) as ws:
            self.ws = ws
            await self.register()
            await self.message_loop()

    async def register(self):
        await self.send({
            'type': 'register',
            'id': self.generate_id(),
            'timestamp': datetime.utcnow().isoformat() + 'Z',
            'payload': {
                'capabilities': self.capabilities,
                'metadata': self.metadata,
            }
        })

    async def message_loop(self):
        async for message in self.ws:
            msg = json.loads(message)
            await self.handle_message(msg)

    async def handle_message(self, msg):
        if msg['type'] == 'task':
            await self.handle_task(msg['payload'])

    async def send(self, msg):
        await self.ws.send(json.dumps(msg))
