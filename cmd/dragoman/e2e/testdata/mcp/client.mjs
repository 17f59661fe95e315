// A client of one of the two npm packages calls agent_ask, and prints what became of it as JSON.
//
//	node client.mjs sdk|client URL plain|oauth CONTENT [cancel]
//
// It gives up after three seconds without progress.
const [library, url, login, content, cancel] = process.argv.slice(2);
const old = library === "sdk";
const { Client } = await import(old ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = await import(old ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");

const said = { progress: [], asked: [] };
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
		timeout: 3000, resetTimeoutOnProgress: true, signal: abort.signal,
		onprogress: p => {
			said.progress.push([p.progress, p.message]);
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
