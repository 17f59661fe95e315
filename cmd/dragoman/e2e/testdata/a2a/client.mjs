// A client of the hub by @a2a-js/sdk: `node client.mjs URL AGENT BINDING`. It prints one JSON
// object with what it saw, which the test compares.
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, withA2AExtensions, ServiceParameters } from '@a2a-js/sdk/client';
import { RestTransportFactory } from '@a2a-js/sdk/client';

const [url, agent, binding] = process.argv.slice(2);
const cursorURI = 'urn:dragoman:a2a:cursor:1';
const seen = {};
let n = 0;

const message = (text) => ({
  message: { messageId: `js-${binding}-${++n}`, role: 1, parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }], contextId: '', taskId: '', metadata: undefined, extensions: [], referenceTaskIds: [] },
  configuration: undefined,
  metadata: undefined,
  tenant: '',
});
const textOf = (artifact) => artifact.parts.map((p) => (p.content?.$case === 'text' ? p.content.value : '')).join('');
const answerOf = (task) => task.artifacts.filter((a) => a.artifactId === 'answer').map(textOf).join('');

// read collects a stream until stop says so, or to its end.
async function read(stream, stop = () => false) {
  const out = { text: '', states: [], items: [], cursor: '', id: '' };
  for await (const item of stream) {
    const { $case, value } = item.payload;
    out.items.push($case);
    if ($case === 'task') {
      out.id = value.id;
      out.text += answerOf(value);
      out.states.push(value.status.state);
    } else if ($case === 'artifactUpdate' && value.artifact.artifactId === 'answer') {
      out.text += textOf(value.artifact);
    } else if ($case === 'statusUpdate') {
      out.states.push(value.status.state);
    }
    out.cursor = value.metadata?.[cursorURI] ?? out.cursor;
    if (stop(out)) break;
  }
  return out;
}

const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] }));
// A path of its own is resolved against the host alone, so the whole address of the card is given.
const client = await factory.createFromUrl(`${url}/a2a/${agent}/.well-known/agent-card.json`, '');
const card = await client.getAgentCard();
seen.card = { name: card.name, binding: client.transport.protocolName, version: client.protocolVersion };
await verifyAgentCardSignature(async (kid, jku) => {
  const { keys } = await (await fetch(jku)).json();
  return keys.find((key) => key.kid === kid);
})(card).then(() => (seen.signature = 'valid'), (error) => (seen.signature = String(error)));
const changed = { ...card, description: card.description + '!' };
const quiet = console.debug;
console.debug = () => {};
await verifyAgentCardSignature(async (kid, jku) => (await (await fetch(jku)).json()).keys[0])(changed).then(() => (seen.changed = 'valid'), () => (seen.changed = 'refused'));
console.debug = quiet;

// The list card has the agent as tenant.
const hub = await factory.createFromUrl(url);
const byTenant = await hub.sendMessage(message(`say js-tenant`));
seen.tenant = answerOf(byTenant);

// send, get, list
const sent = await client.sendMessage(message(`say js-send`));
seen.sent = { state: sent.status.state, text: answerOf(sent) };
const got = await client.getTask({ id: sent.id, tenant: '', historyLength: undefined });
seen.got = { same: got.id === sent.id, text: answerOf(got), history: got.history.length };
const listed = await client.listTasks({ tenant: '', contextId: sent.contextId, status: 0, pageSize: 10, pageToken: '', historyLength: 0, statusTimestampAfter: undefined, includeArtifacts: true });
seen.listed = { ids: listed.tasks.map((t) => t.id === sent.id), total: listed.totalSize, text: listed.tasks.map(answerOf).join('') };

// stream
const burst = await read(client.sendMessageStream(message(`burst js-burst`)));
seen.burst = { text: burst.text, first: burst.items[0], last: burst.states.at(-1) };

// a cut stream is continued exactly
const extended = { serviceParameters: ServiceParameters.create(withA2AExtensions(cursorURI)) };
const cut = await read(client.sendMessageStream(message(`hang js-cut-${binding}`), extended), (out) => out.text.length > 0);
const resumed = read(client.resubscribeTask({ id: cut.id, tenant: '' }, { serviceParameters: { ...extended.serviceParameters, 'Last-Event-ID': cut.cursor } }));
const whole = read(client.resubscribeTask({ id: cut.id, tenant: '' }), (out) => out.text.length > 0);
const snapshot = await whole;
seen.snapshot = { first: snapshot.items[0], text: snapshot.text };
console.log(JSON.stringify({ release: `js-cut-${binding}` }));
const rest = await resumed;
seen.cut = { text: cut.text, rest: rest.text, first: rest.items[0], last: rest.states.at(-1) };

// cancel
const hanging = client.sendMessageStream(message(`hang js-cancel-${binding}`));
const begun = await read({ [Symbol.asyncIterator]: () => ({ next: () => hanging.next() }) }, (out) => out.text.length > 0);
const cancelled = await client.cancelTask({ id: begun.id, tenant: '', metadata: undefined });
const end = await read(hanging);
seen.cancelled = { state: cancelled.status.state, stream: end.states.at(-1) };

// errors
const reason = async (promise) => promise.then(() => 'none', (error) => error.reason ?? error.constructor.name);
seen.errors = {
  missing: await reason(client.getTask({ id: 'nothing', tenant: '', historyLength: undefined })),
  ended: await reason(client.cancelTask({ id: sent.id, tenant: '', metadata: undefined })),
  terminal: await reason(client.sendMessage({ ...message('more'), message: { ...message('more').message, taskId: sent.id } })),
};

// a peer of version 0.3
const legacy = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ legacyCompat: { enabled: true } }), new RestTransportFactory({ legacyCompat: { enabled: true } })],
  preferredTransports: [binding],
}));
const old = await legacy.createFromAgentCard({ ...card, signatures: [], supportedInterfaces: card.supportedInterfaces.map((i) => ({ ...i, protocolVersion: '0.3' })) });
seen.legacy = await old.sendMessage(message('say js-old')).then(() => 'answered', (error) => error.message);

console.log(JSON.stringify({ seen }));
