// The published client of a control plane, @parallaxai/client: what it makes of the
// hub's answers, a line each.
const { ParallaxClient } = require('@parallaxai/client');

const client = new ParallaxClient({ baseUrl: process.env.HUB, apiKey: process.env.KEY, retries: 0 });
const told = (error) => `${error.status} ${error.code} ${error.message}`;

async function ended(id) {
  for (;;) {
    const execution = await client.executions.get(id);
    if (execution.endTime) return execution;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function main() {
  const { agents } = await client.agents.list();
  console.log('AGENTS ' + agents.map((a) => a.id).join(' '));
  await client.agents.get('nobody').catch((error) => console.log('NOBODY ' + told(error)));
  await client.executions.create({ patternName: 'singing', input: 'x' }).catch((error) => console.log('NO AGENTS ' + told(error)));
  for (const input of ['hello', 'fail']) {
    const { id } = await client.executions.create({ patternName: 'shouting', input });
    const { status, result, error, confidence } = await ended(id);
    console.log(`EXECUTION ${status} ${JSON.stringify(result)} ${error} ${confidence}`);
  }
  const stranger = new ParallaxClient({ baseUrl: process.env.HUB, apiKey: 'wrong', retries: 0 });
  await stranger.agents.list().catch((error) => console.log('STRANGER ' + told(error)));
}

main().catch((error) => console.log('BROKEN ' + error.stack));
