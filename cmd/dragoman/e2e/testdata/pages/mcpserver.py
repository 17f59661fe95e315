"""Stands in for an MCP server on stdin and stdout, @modelcontextprotocol/server-everything: it has its tool echo."""
import json
import sys

ECHO = {"name": "echo", "description": "Echoes back the input string", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}}

for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params", {})
    answer = {
        "initialize": lambda: {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "stand-in", "version": "1"}},
        "tools/list": lambda: {"tools": [ECHO]},
        "tools/call": lambda: {"content": [{"type": "text", "text": "Echo: " + params["arguments"]["message"]}]},
    }.get(message.get("method"))
    if answer:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer()}), flush=True)
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown method"}}), flush=True)
