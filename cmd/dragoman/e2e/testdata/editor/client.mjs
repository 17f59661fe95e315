// An editor, by the published SDK of its protocol. It starts "dragoman editor" as editors do,
// asks, approves, cancels and loads, and prints what it has seen as JSON.
import {spawn} from 'node:child_process';
import {Readable, Writable} from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const [command, ...args] = JSON.parse(process.env.EDITOR_COMMAND);
const child = spawn(command, args, {stdio: ['pipe', 'pipe', 'inherit']});
const exited = new Promise(resolve => child.on('exit', resolve));

const M = acp.methods;
let updates = [], onChunk = () => {};
const permissions = [];
const editor = acp.client({name: 'test'})
  .onRequest(M.client.session.requestPermission, async c => {
    permissions.push(c.params);
    const allow = c.params.options.find(o => o.kind === 'allow_once');
    return {outcome: {outcome: 'selected', optionId: allow.optionId}};
  })
  .onNotification(M.client.session.update, async c => {
    updates.push(c.params.update);
    if (c.params.update.sessionUpdate === 'agent_message_chunk') onChunk();
  });

const text = kind => updates.filter(u => u.sessionUpdate === kind).map(u => u.content.text ?? '').join('');
const taken = () => { const seen = {agent: text('agent_message_chunk'), user: text('user_message_chunk'), kinds: [...new Set(updates.map(u => u.sessionUpdate))]}; updates = []; return seen; };

const out = {};
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await editor.connectWith(stream, async agent => {
  out.initialize = await agent.request(M.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION, clientInfo: {name: 'test', version: '1'},
    clientCapabilities: {fs: {readTextFile: true, writeTextFile: true}, terminal: true},
  });
  const {sessionId} = await agent.request(M.agent.session.new, {cwd: process.cwd(), mcpServers: [{name: 'x', command: 'x', args: [], env: []}]});
  out.sessionId = sessionId;
  const ask = words => agent.request(M.agent.session.prompt, {sessionId, prompt: [{type: 'text', text: words}]});

  out.tool = {...await ask('tool k1'), ...taken()};
  out.leave = {...await ask('leave k2'), ...taken(), permissions};
  const chunk = new Promise(resolve => { onChunk = resolve; });
  const hanging = ask('hang k3');
  await chunk;
  await agent.notify(M.agent.session.cancel, {sessionId});
  out.hang = {...await hanging, ...taken()};
  out.fail = await ask('fail k4 overloaded').catch(e => ({code: e.code, message: e.message, data: e.data}));
  taken();
  await agent.request(M.agent.session.load, {sessionId, cwd: process.cwd(), mcpServers: []});
  out.load = taken();
  out.list = await agent.request(M.agent.session.list, {});
  out.unknown = await agent.request(M.agent.session.load, {sessionId: 'nope', cwd: '/', mcpServers: []}).catch(e => ({code: e.code, message: e.message}));
  await agent.request(M.agent.session.close, {sessionId});
});
child.stdin.end();
out.exit = await exited;
console.log(JSON.stringify(out));
