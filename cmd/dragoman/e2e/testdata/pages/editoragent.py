"""Stands in for an agent of the editors' Agent Client Protocol: for that whose program is STANDS_FOR.

It says the prompt in capitals; if asked to write, it writes hello.txt, after it has asked for permission where
its mode, or the opencode.json of its directory, says so.
"""
import json
import os
import sys

MODES = {  # the one in which it starts comes first, and whether it asks
    "claude-agent-acp": {"auto": False, "default": True},
    "codex-acp": {"agent": False, "read-only": True},
    "gemini": {"default": True},
    "opencode": {"build": False},
    "qwen": {"auto": False, "default": True},
}[os.environ["STANDS_FOR"]]

modes = {}  # by session
asked = {}  # the prompt that waits, by the id of the request for permission


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session, **what):
    send(method="session/update", params={"sessionId": session, "update": what})


def finish(prompt, session, text):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
    send(id=prompt, result={"stopReason": "end_turn"})


def configured():
    return os.path.exists("opencode.json") and json.load(open("opencode.json"))["permission"]["edit"] == "ask"


def begin(prompt, session, text):
    if "rite" not in text:
        return finish(prompt, session, text.upper())
    if not MODES[modes[session]] and not configured():
        open("hello.txt", "w").write("hello\n")
        return finish(prompt, session, "Written.")
    update(session, sessionUpdate="tool_call", toolCallId="t", title="Write hello.txt", kind="edit", rawInput={"path": "hello.txt"})
    asked["ask"] = (prompt, session)
    options = [{"optionId": k, "name": k, "kind": k} for k in ("allow_once", "reject_once")]
    send(id="ask", method="session/request_permission", params={"sessionId": session, "toolCall": {"toolCallId": "t"}, "options": options})


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
    elif method == "session/new":
        session = "s%s" % message["id"]
        modes[session] = next(iter(MODES))
        available = [{"id": k, "name": k} for k in MODES]
        send(id=message["id"], result={"sessionId": session, "modes": {"currentModeId": modes[session], "availableModes": available}})
    elif method == "session/set_mode":
        modes[params["sessionId"]] = params["modeId"]
        send(id=message["id"], result={})
    elif method == "session/prompt":
        begin(message["id"], params["sessionId"], params["prompt"][-1]["text"])
    elif message.get("id") in asked:
        prompt, session = asked.pop(message["id"])
        allowed = message["result"]["outcome"].get("optionId") == "allow_once"
        if allowed:
            open("hello.txt", "w").write("hello\n")
        update(session, sessionUpdate="tool_call_update", toolCallId="t", status="completed" if allowed else "failed")
        finish(prompt, session, "Written." if allowed else "Not written.")
    elif "id" in message and method:
        send(id=message["id"], error={"code": -32601, "message": "unknown method"})
