// The tools of a Dragoman hub for pi: those of the hub itself (agents_list, agent_ask, …) and those of
// the packs that are connected to it. The hub starts pi with this file as an --extension, and with its
// address and a token in the environment. They are removed from there, so that commands that pi runs do
// not get them, and kept for when pi loads the extension again, as it does for another session.
const hub = (globalThis[Symbol.for("dragoman.hub")] ??= { url: process.env.DRAGOMAN_MCP_URL, token: process.env.DRAGOMAN_MCP_TOKEN });
delete process.env.DRAGOMAN_MCP_URL;
delete process.env.DRAGOMAN_MCP_TOKEN;

// What providers take as the name of a tool; the hub's may have dots.
const maxName = 64;
// A tool of one of these names would replace pi's own.
const builtin = new Set(["read", "bash", "edit", "write", "grep", "find", "ls"]);

let ids = 0;

// request sends one MCP request. The hub answers with JSON, or with a stream if the call takes long: then
// neither side takes the silence for a lost connection.
async function request(method, params, { signal, progress } = {}) {
  const id = ++ids;
  const response = await fetch(hub.url, {
    method: "POST",
    signal,
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      ...(hub.token ? { Authorization: `Bearer ${hub.token}` } : {}),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  });
  if ((response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    for await (const message of messages(response.body)) {
      if (message.id === id) return outcome(message);
      if (message.method === "notifications/progress") progress?.(message.params?.message);
    }
    throw new Error("the hub ended the stream without an answer");
  }
  const text = await response.text();
  try {
    return outcome(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`the hub answered ${response.status}: ${text.slice(0, 500)}`);
    throw error;
  }
}

function outcome(message) {
  if (message.error) throw new Error(message.error.message);
  return message.result;
}

// messages yields the messages of a stream of server-sent events.
async function* messages(body) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const events = (rest + decoder.decode(chunk, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length > 0) yield JSON.parse(data.join("\n"));
    }
  }
}

// content is a result of MCP as pi has it.
function content(result) {
  return (result.content ?? []).map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "image") return { type: "image", data: part.data, mimeType: part.mimeType };
    return { type: "text", text: JSON.stringify(part) };
  });
}

const text = (parts) => parts.map((part) => part.text ?? `[${part.type}]`).join("\n");

export default function (pi) {
  const known = new Map(); // by the name that pi has

  const nameFor = (tool) => {
    let name = tool.name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, maxName);
    if (builtin.has(name)) name = `hub_${name}`;
    for (let i = 2; known.has(name) && known.get(name).name !== tool.name; i++) {
      name = `${name.slice(0, maxName - 4)}_${i}`;
    }
    return name;
  };

  const register = (tool) => {
    const name = nameFor(tool);
    if (JSON.stringify(known.get(name)) === JSON.stringify(tool)) return name;
    known.set(name, tool);
    pi.registerTool({
      name,
      label: tool.title ?? tool.name,
      description: tool.description ?? tool.name,
      parameters: tool.inputSchema ?? { type: "object" },
      async execute(call, input, signal, onUpdate) {
        const result = await request(
          "tools/call",
          { name: tool.name, arguments: input, _meta: { progressToken: call, "dragoman/call": call } },
          { signal, progress: (said) => said && onUpdate?.({ content: [{ type: "text", text: said }], details: {} }) },
        );
        const parts = content(result);
        if (result.isError) throw new Error(text(parts) || "the tool failed");
        return { content: parts, details: result.structuredContent ?? {} };
      },
    });
    return name;
  };

  // refresh takes over which tools there are now. Without the hub those of before stay.
  const refresh = async (_event, ctx) => {
    try {
      const tools = [];
      let cursor;
      do {
        const page = await request("tools/list", cursor ? { cursor } : {}, { signal: AbortSignal.timeout(5000) });
        tools.push(...(page.tools ?? []));
        cursor = page.nextCursor;
      } while (cursor);
      const now = new Set(tools.map(register));
      const gone = [...known.keys()].filter((name) => !now.has(name));
      if (gone.length > 0) {
        pi.setActiveTools(pi.getActiveTools().filter((name) => !gone.includes(name)));
        for (const name of gone) known.delete(name);
      }
    } catch (error) {
      ctx.ui.notify(`the tools of the hub are not known: ${error.message}`, "warning");
    }
  };

  pi.on("session_start", refresh);
  pi.on("before_agent_start", refresh);
}
