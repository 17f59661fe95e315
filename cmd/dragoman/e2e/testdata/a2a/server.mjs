// An agent on the official SDK of A2A (@a2a-js/sdk, express). It does what the first word of a
// message says. BINDING and STREAMS are from the environment; /address and /release are for the test.
import express from "express";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";

const WORKING = 2, COMPLETED = 3, FAILED = 4, CANCELED = 5, INPUT_REQUIRED = 6, AGENT = 2;
const text = (value) => ({ content: { $case: "text", value }, mediaType: "text/plain", filename: "", metadata: {} });
const released = { resolve() {} };
const release = new Promise((resolve) => (released.resolve = resolve));

class Executor {
  cancels = new Map();

  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const status = (state, says) =>
      bus.publish(AgentEvent.statusUpdate({
        taskId, contextId, metadata: {},
        status: {
          state, timestamp: new Date().toISOString(),
          message: says && { messageId: crypto.randomUUID(), role: AGENT, taskId, contextId, parts: [text(says)], metadata: {}, extensions: [], referenceTaskIds: [] },
        },
      }));
    const chunk = (value, append) =>
      bus.publish(AgentEvent.artifactUpdate({
        taskId, contextId, append, lastChunk: false, metadata: {},
        artifact: { artifactId: "a1", name: "", description: "", parts: [text(value)], metadata: {}, extensions: [] },
      }));
    if (context.task) {
      bus.publish(AgentEvent.task(context.task)); // the SDK wants a task first, here as well
    } else {
      bus.publish(AgentEvent.task({ id: taskId, contextId, status: { state: 1, timestamp: new Date().toISOString() }, artifacts: [], history: [userMessage], metadata: {} }));
    }
    const [word, ...rest] = userMessage.parts.map((p) => (p.content?.$case === "text" ? p.content.value : "")).join("").split(" ");
    if (context.task) {
      chunk(`you said ${[word, ...rest].join(" ")}`, true);
      status(COMPLETED);
      return bus.finished();
    }
    status(WORKING);
    switch (word) {
      case "stream":
        for (let i = 0; i < Number(rest[0]); i++) chunk(`${i} `, i > 0);
        status(COMPLETED);
        break;
      case "ask":
        chunk("so ", false);
        status(INPUT_REQUIRED, "Which city?");
        return; // the bus stays
      case "hold":
        chunk("one ", false);
        chunk("two ", true);
        await release;
        chunk("three", true);
        status(COMPLETED);
        break;
      case "wait":
        chunk("one ", false);
        await new Promise((resolve) => this.cancels.set(taskId, resolve));
        status(CANCELED, "as asked");
        break;
      case "fail":
        status(FAILED, "no such city");
        break;
      default:
        chunk([word, ...rest].join(" ").toUpperCase(), false);
        status(COMPLETED);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.cancels.get(taskId)?.();
  }
}

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const binding = process.env.BINDING;
  const card = {
    name: "Sample", description: "does what it is told", version: "1.0.0", documentationUrl: "", iconUrl: "", provider: undefined,
    supportedInterfaces: [{ url: `${url}/${binding === "JSONRPC" ? "rpc" : "rest"}`, protocolBinding: binding, protocolVersion: "1.0", tenant: "" }],
    capabilities: { streaming: process.env.STREAMS !== "no", pushNotifications: false, extensions: [] },
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
    skills: [{ id: "sample", name: "Sample", description: "all it can", tags: [], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
    signatures: [],
  };
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
  app.get("/address", (request, response) => { card.supportedInterfaces[0].url = request.query.url; response.end(); });
  app.get("/release", (_, response) => { released.resolve(); response.end(); });
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
  app.use("/rpc", jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
  app.use("/rest", restHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
  console.log(`READY ${server.address().port}`);
});
