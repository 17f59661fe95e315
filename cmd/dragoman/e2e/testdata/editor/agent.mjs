// An agent on the SDK of the editor's protocol. The first word of a prompt says what it does.
import * as acp from '@agentclientprotocol/sdk';
import { Readable, Writable } from 'node:stream';

const methods = acp.methods;
const cancelled = new Map(); // what ends a turn that waits, by session
let sessions = 0;
console.error('the agent begins');

const agent = acp.agent({ name: 'sdk-agent', version: '0' });
agent
  .onRequest(methods.agent.initialize, async () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true }, authMethods: [] }))
  .onRequest(methods.agent.session.new, async () => ({ sessionId: `s${++sessions}` }))
  .onRequest(methods.agent.session.load, async (c) => {
    await c.client.notify(methods.client.session.update, { sessionId: c.params.sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'REPLAYED' } } });
    return {};
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
