// A client of an npm package asks the agent who at a hub, once with each set of headers on stdin, and
// prints what each time became of it as a JSON list.
//
//	node client.mjs sdk|client|JSONRPC|HTTP+JSON URL < HEADERS
import { readFileSync } from 'node:fs';

const [library, url] = process.argv.slice(2);

// mcp calls the tool agent_ask.
async function mcp(headers) {
  const old = library === 'sdk';
  const { Client } = await import(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
  const { StreamableHTTPClientTransport } = await import(old ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
  const client = new Client({ name: 'test', version: '1' }, old ? {} : { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  const { content } = await client.callTool({ name: 'agent_ask', arguments: { to: 'who', content: 'am I' } });
  await client.close();
  return content[0].text;
}

// a2a sends a message.
async function a2a(headers) {
  const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory, createAuthenticatingFetchWithRetry } = await import('@a2a-js/sdk/client');
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, { headers: async () => headers, shouldRetryWithHeaders: async () => undefined });
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })], preferredTransports: [library], cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  }));
  const client = await factory.createFromUrl(`${url}/a2a/who/.well-known/agent-card.json`, '');
  const task = await client.sendMessage({
    message: { messageId: crypto.randomUUID(), role: 1, parts: [{ content: { $case: 'text', value: 'am I' }, metadata: undefined, filename: '', mediaType: 'text/plain' }], contextId: '', taskId: '', metadata: undefined, extensions: [], referenceTaskIds: [] },
    configuration: undefined, metadata: undefined, tenant: '',
  });
  return task.artifacts.flatMap((a) => a.parts).map((p) => p.content.value).join('');
}

const said = [];
for (const headers of JSON.parse(readFileSync(0, 'utf8'))) {
  const ask = library === 'sdk' || library === 'client' ? mcp : a2a;
  said.push(await ask(headers).then((text) => ({ text }), (error) => ({ error: String(error?.message ?? error) })));
}
console.log(JSON.stringify(said));
process.exit(0);
