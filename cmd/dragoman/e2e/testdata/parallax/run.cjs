// Runs agent.ts, the sample of the protocol's page, as it stands. What the page leaves
// to its reader is added here: who the agent is and what it does with a task. Its address
// is replaced by that of HUB.
const fs = require('node:fs');
const path = require('node:path');
const ts = require('typescript');

const source = fs.readFileSync(path.join(__dirname, 'agent.ts'), 'utf8').replace('wss://parallax.example.com/ws/agent', process.env.HUB);
const { outputText } = ts.transpileModule(source, { compilerOptions: { module: 'CommonJS', target: 'ES2022', esModuleInterop: true } });
const sample = { exports: {} };
new Function('require', 'module', 'exports', outputText + '\nmodule.exports = ParallaxAgent;')(require, sample, sample.exports);

class Shout extends sample.exports {
  constructor() {
    super();
    this.token = process.env.TOKEN;
    this.capabilities = ['classification'];
    this.metadata = { name: 'typescript-sample' };
    this.activeTasks = new Map();
    this.ids = 0;
  }
  generateId() { return `node_${++this.ids}`; }
  reconnect() { clearInterval(this.heartbeatInterval); }
  cancelTask(id) { console.log(`cancelled ${id}`); this.activeTasks.get(id)?.(new Error('cancelled')); }
  async processTask(task) {
    if (task.input.content === 'fail') throw new Error('it was asked to');
    if (task.input.content === 'wait') await new Promise((_, reject) => this.activeTasks.set(task.taskId, reject));
    return { content: task.input.content.toUpperCase() };
  }
}
new Shout().connect();
