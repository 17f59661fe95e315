// A client of one of the two npm packages calls agent_ask. It prints a line "progress" whenever it is told
// of some, and at last what became of the call as JSON.
//
//	node client.mjs sdk|client URL plain|oauth CONTENT [cancel]
//
// It gives up after three seconds without progress, on a clock that goes on by two with each progress.
const patience = 3000, step = 2000;
const clock = { now: 0, timers: new Map() };
const { setTimeout: start, clearTimeout: stop } = globalThis;
globalThis.setTimeout = (act, ms, ...rest) => {
	if (ms !== patience) return start(act, ms, ...rest);
	const timer = { ref: () => timer, unref: () => timer };
	clock.timers.set(timer, { due: clock.now + ms, act: () => act(...rest) });
	return timer;
};
globalThis.clearTimeout = timer => { if (!clock.timers.delete(timer)) stop(timer); };
const goOn = ms => {
	clock.now += ms;
	for (const [timer, { due, act }] of clock.timers) {
		if (due <= clock.now) {
			clock.timers.delete(timer);
			act();
		}
	}
};

const [library, url, login, content, cancel] = process.argv.slice(2);
const old = library === "sdk";
const { Client } = await import(old ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = await import(old ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");

const said = { progress: [], asked: [], timed: 0 };
const client = new Client({ name: "test", version: "1" }, {
	capabilities: { elicitation: { form: {} } },
	...(old ? {} : { versionNegotiation: { mode: "auto" } }),
});
const answer = async request => {
	said.asked.push(request.params.message);
	return { action: "accept", content: { allow: true } };
};
if (old) {
	const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
	client.setRequestHandler(ElicitRequestSchema, answer);
} else {
	client.setRequestHandler("elicitation/create", answer);
}
const authProvider = {
	get redirectUrl() { return "http://127.0.0.1:1/callback"; },
	get clientMetadata() { return { client_name: "test", redirect_uris: ["http://127.0.0.1:1/callback"] }; },
	clientInformation() {}, saveClientInformation() {}, tokens() {}, saveTokens() {}, saveCodeVerifier() {}, codeVerifier() { return "x"; },
	redirectToAuthorization(to) { said.redirected = String(to); },
};
try {
	await client.connect(new StreamableHTTPClientTransport(new URL(url), login === "oauth" ? { authProvider } : {}));
	said.version = old ? undefined : client.getNegotiatedProtocolVersion?.();
	const abort = new AbortController();
	const options = {
		timeout: patience, resetTimeoutOnProgress: true, signal: abort.signal,
		onprogress: p => {
			said.progress.push([p.progress, p.message]);
			console.log("progress");
			said.timed += clock.timers.size && 1; // its patience is on the clock
			goOn(step);
			if (cancel) abort.abort("the user has changed his mind");
		},
	};
	const call = { name: "agent_ask", arguments: { to: "bob", content } };
	const result = old ? await client.callTool(call, undefined, options) : await client.callTool(call, options);
	said.isError = result.isError ?? false;
	said.content = result.content;
	said.structured = result.structuredContent;
	await client.close();
} catch (e) {
	said.error = String(e?.message ?? e);
}
console.log(JSON.stringify(said));
process.exit(0);
