// An agent on the SDK of the editor's protocol. The first word of a prompt says what it does.
import * as acp from '@agentclientprotocol/sdk';
import { Readable, Writable } from 'node:stream';

const methods = acp.methods;
const cancelled = new Map(); // what ends a turn that waits, by session
const steered = new Map(); // who waits for more context, by session
const set = new Map(); // what a session is set to
let sessions = 0;

const optionsOf = (sessionId) => [
  { id: 'model', name: 'Model', category: 'model', type: 'select', currentValue: set.get(sessionId).model, options: [{ value: 'small', name: 'Small' }, { value: 'big', name: 'Big' }] },
  { id: 'web', name: 'Web', type: 'boolean', currentValue: set.get(sessionId).web },
];
const offerOf = (sessionId) => {
  if (!set.has(sessionId)) set.set(sessionId, { mode: 'auto', model: 'small', web: false });
  return { modes: { currentModeId: set.get(sessionId).mode, availableModes: [{ id: 'auto', name: 'Auto' }, { id: 'plan', name: 'Plan' }] }, configOptions: optionsOf(sessionId) };
};
console.error('the agent begins');

const agent = acp.agent({ name: 'sdk-agent', version: '0' });
agent
  .onRequest(methods.agent.initialize, async () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true }, authMethods: [], _meta: { steering: { supported: true } } }))
  .onRequest(methods.agent.session.new, async () => ({ sessionId: `s${++sessions}`, ...offerOf(`s${sessions}`) }))
  .onRequest(methods.agent.session.setMode, async (c) => {
    set.get(c.params.sessionId).mode = c.params.modeId;
    return {};
  })
  .onRequest(methods.agent.session.setConfigOption, async (c) => {
    set.get(c.params.sessionId)[c.params.configId] = c.params.value;
    return { configOptions: optionsOf(c.params.sessionId) };
  })
  .onRequest('_session/steering', (params) => params, async (c) => {
    const take = steered.get(c.params.sessionId);
    take?.(c.params.prompt[0].text);
    return take ? { outcome: 'injected' } : { outcome: 'promptRequired', reason: 'noRunningTurn' };
  })
  .onRequest(methods.agent.session.load, async (c) => {
    await c.client.notify(methods.client.session.update, { sessionId: c.params.sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'REPLAYED' } } });
    return offerOf(c.params.sessionId);
  })
  .onNotification(methods.agent.session.cancel, async (c) => cancelled.get(c.params.sessionId)?.())
  .onRequest(methods.agent.session.prompt, async (c) => {
    const sessionId = c.params.sessionId;
    const tell = (update) => c.client.notify(methods.client.session.update, { sessionId, update });
    const say = (text) => tell({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
    const verb = c.params.prompt.at(-1).text.split(/\s/)[0];
    switch (verb) {
      case 'write': {
        await tell({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Let me see.' } });
        await tell({ sessionUpdate: 'plan', entries: [{ content: 'write', priority: 'high', status: 'pending' }] });
        await tell({ sessionUpdate: 'tool_call', toolCallId: 't1', title: 'Write a.txt', kind: 'edit', status: 'pending', rawInput: { path: 'a.txt' } });
        const { outcome } = await c.client.request(methods.client.session.requestPermission, {
          sessionId,
          toolCall: { toolCallId: 't1' },
          options: [{ optionId: 'a', name: 'Allow', kind: 'allow_once' }, { optionId: 'r', name: 'Reject', kind: 'reject_once' }],
        });
        const allowed = outcome.outcome === 'selected' && outcome.optionId === 'a';
        await tell({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: allowed ? 'completed' : 'failed', content: [{ type: 'content', content: { type: 'text', text: allowed ? 'written' : 'refused' } }] });
        for (const word of ['HEL', 'LO']) await say(word);
        return { stopReason: 'end_turn', usage: { inputTokens: 5, outputTokens: 4, totalTokens: 9 } };
      }
      case 'count':
        for (let i = 0; i < 1000; i++) await say(`${i} `);
        return { stopReason: 'end_turn' };
      case 'wait': {
        const end = new Promise((resolve) => cancelled.set(sessionId, resolve));
        await say('waiting');
        await end;
        await say(', what was left');
        return { stopReason: 'cancelled' };
      }
      case 'set':
        await say(Object.entries(set.get(sessionId)).map(([name, value]) => `${name}=${value}`).join(' '));
        return { stopReason: 'end_turn' };
      case 'more': {
        const more = new Promise((resolve) => steered.set(sessionId, resolve));
        await say('so far');
        await say(` and ${await more}`);
        return { stopReason: 'end_turn' };
      }
      case 'garbage':
        process.stdout.write('Debugger attached.\n{"jsonrpc":"2.0","id":4711,"result":{}}\n');
        await say('still here');
        return { stopReason: 'end_turn' };
      case 'die':
        await say('half');
        process.exit(3);
    }
    await say(JSON.stringify(c.params.prompt.map((b) => b.text)));
    return { stopReason: 'end_turn' };
  });
agent.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
