// A native agent of Dragoman in TypeScript, with the package ws and nothing else:
//
//	npm install ws && node agent.ts ws://127.0.0.1:8080/ws/native     (Node 22.18 or later, else "npx tsx agent.ts ...")
//
// It sends the token in DRAGOMAN_TOKEN, if there is one. With a token the id must be the name
// of its principal, or one that the token's agents allow: set AGENT_ID to it.
//
// It says the request back word by word. "agents" lists the agents of the hub by a tool, "ask A X"
// asks the agent A and says its answer, "delete X" asks for an approval first, and "wait" waits for context or a cancel.
// docs/dialects/native.md has all frames.
import WebSocket from "ws";

type Body = Record<string, any>;
type Event = { task: string; role: string; kind: string; body: Body };

const card = {
  id: process.env.AGENT_ID ?? "parrot-ts",
  name: "Parrot",
  capabilities: ["parrot"],
  features: ["streaming", "cancellation", "injection", "approvals"],
  max_concurrent: 4,
};

const token = process.env.DRAGOMAN_TOKEN;
const headers = token ? { Authorization: `Bearer ${token}` } : undefined;
const socket = new WebSocket(process.argv[2] ?? "ws://127.0.0.1:8080/ws/native", { headers });
const send = (frame: object) => socket.send(JSON.stringify(frame));

// A call is answered by a result or an error with its id.
const calls = new Map<string, { resolve: (v: Body) => void; reject: (e: Error) => void }>();
let lastCall = 0;
function call(act: string, command: object): Promise<Body> {
  const id = String(++lastCall);
  send({ call: { id, act, command } });
  return new Promise((resolve, reject) => calls.set(id, { resolve, reject }));
}

// Work is a task that is being worked on.
class Work {
  cancelled = false;
  private waiting?: (told: Body | null) => void;

  constructor(readonly task: string, readonly request: Body) {}

  say(kind: string, body: Body = {}) {
    send({ event: { task: this.task, kind, body } });
  }

  // next waits for a decision or context; null if the task is cancelled.
  next(): Promise<Body | null> {
    return this.cancelled ? Promise.resolve(null) : new Promise((resolve) => (this.waiting = resolve));
  }

  tell(told: Body | null) {
    this.cancelled ||= told === null;
    this.waiting?.(told);
  }

  async run() {
    try {
      await this.answer((this.request.content as string).split(/\s+/));
      this.cancelled ? this.say("cancelled", { reason: "as you wish" }) : this.say("done");
    } catch (e) {
      this.say("failed", { fault: { code: "internal", message: String(e) } });
    }
    work.delete(this.task);
  }

  async answer(words: string[]) {
    switch (words[0]) {
      case "agents": {
        const { output } = await call("call_tool", { tool: "agents_list", input: {} });
        return this.say("text", { text: output.agents.map((a: Body) => a.name).join(", ") });
      }
      case "ask": {
        const question = { to: words[1], content: words.slice(2).join(" ") };
        const { output } = await call("call_tool", { tool: "agent_ask", input: question });
        return this.say("text", { text: `${words[1]} says: ${output.text}` });
      }
      case "delete": {
        const input = JSON.stringify(words.slice(1));
        this.say("tool_call", { id: "1", name: "delete", input });
        this.say("approval_requested", { id: "1", name: "delete", input });
        const decided = await this.next();
        const state = decided?.approved ? "completed" : "denied";
        this.say("tool_state", { id: "1", state });
        return this.say("text", { text: state });
      }
      case "wait": {
        this.say("text", { text: "waiting " });
        const injected = await this.next();
        return injected && this.say("text", { text: injected.content });
      }
    }
    for (const word of words) {
      if (this.cancelled) return;
      this.say("text", { text: word + " " });
      await new Promise(setImmediate); // lets a cancel in
    }
  }
}

const work = new Map<string, Work>();

function onEvent({ task, kind, body }: Event) {
  const w = work.get(task);
  if (kind === "opened") work.set(task, new Work(task, body.request));
  else if (kind === "assigned") w?.run();
  else if (kind === "approval_decided") w?.tell(body);
  else if (kind === "injected") {
    w?.say("injection_answered", { id: body.id, accepted: true });
    w?.tell(body);
  } else w?.tell(null); // cancel_requested, or an end that is not ours
}

function fail(why: string): never {
  console.error(why);
  process.exit(1);
}

socket.on("open", async () => {
  try {
    console.error("joined as", (await call("join", { card })).agent);
  } catch (refused) {
    fail(`the hub refused the agent: ${(refused as Error).message}`);
  }
});
socket.on("error", (error) => {
  const hint = error.message.endsWith("401") ? "; set DRAGOMAN_TOKEN to a valid token of this hub" : "";
  fail(`${socket.url}: ${error.message || (error as any).code}${hint}`);
});
socket.on("close", (code, reason) => {
  if (code !== 1000 && code !== 1001) fail(`the hub has closed the connection: ${reason} (${code})`);
  process.exit(0);
});
socket.on("message", (text) => {
  const frame = JSON.parse(String(text));
  if (frame.event) onEvent(frame.event);
  else if (frame.result) calls.get(frame.result.id)?.resolve(frame.result);
  else if (frame.error) {
    const waits = calls.get(frame.error.id);
    waits ? waits.reject(new Error(frame.error.fault.message)) : console.error("error", frame.error);
  }
});
