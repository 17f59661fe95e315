"""Runs agent.py, the sample of the protocol's page, as it stands.

What the page leaves to its reader is added here: who the agent is and what it does
with a task. Its address is replaced by that of HUB.
"""
import asyncio
import os
import pathlib

source = pathlib.Path(__file__).with_name('agent.py').read_text()
scope = {}
exec(compile(source.replace('wss://parallax.example.com/ws/agent', os.environ['HUB']), 'agent.py', 'exec'), scope)


class Shout(scope['ParallaxAgent']):
    token = os.environ['TOKEN']
    capabilities = ['analysis']
    metadata = {'name': 'python-sample'}
    ids = 0

    def generate_id(self):
        self.ids += 1
        return f'python_{self.ids}'

    async def handle_task(self, task):
        await self.send({
            'type': 'task_result',
            'id': self.generate_id(),
            'timestamp': scope['datetime'].utcnow().isoformat() + 'Z',
            'payload': {
                'taskId': task['taskId'],
                'executionId': task['executionId'],
                'status': 'completed',
                'result': {'content': task['input']['content'].upper()},
            },
        })


asyncio.run(Shout().connect())
