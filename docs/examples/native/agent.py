#!/usr/bin/env python3
"""A native agent of Dragoman, with nothing but the standard library.

    python3 agent.py                            as a child: frames on stdin and stdout
    python3 agent.py ws://127.0.0.1:8080/ws/native   by WebSocket, with the package websockets

By WebSocket it sends the token in DRAGOMAN_TOKEN, if there is one. With a token the id must be
the name of its principal, or one that the token's agents allow: set AGENT_ID to it.

It says the request back word by word. "agents" lists the agents of the hub by a tool, "ask A X"
asks the agent A and says its answer, "delete X" asks for an approval first, and "wait" waits for context or a cancel.
docs/dialects/native.md has all frames.
"""
import asyncio
import base64
import json
import os
import sys

CARD = {
    "id": os.environ.get("AGENT_ID", "parrot-py"),
    "name": "Parrot",
    "capabilities": ["parrot"],
    "features": ["streaming", "cancellation", "injection", "approvals"],
    "max_concurrent": 4,
}


class Agent:
    def __init__(self, send):
        self.send = send
        self.calls = {}  # by id: the future of the result
        self.tasks = {}  # by task: the coroutine that works on it
        self.news = {}  # by task: what it is told

    async def call(self, act, command):
        call_id = str(len(self.calls) + 1)
        self.calls[call_id] = asyncio.get_running_loop().create_future()
        await self.send({"call": {"id": call_id, "act": act, "command": command}})
        return await self.calls[call_id]

    async def say(self, task, kind, **body):
        await self.send({"event": {"task": task, "kind": kind, "body": body}})

    async def work(self, task, request):
        """Answers one request."""
        words = request["content"].split()
        try:
            if words[:1] == ["agents"]:
                result = await self.call("call_tool", {"tool": "agents_list", "input": {}})
                names = [a["name"] for a in result["output"]["agents"]]
                await self.say(task, "text", text=", ".join(names))
            elif words[:1] == ["ask"]:
                question = {"to": words[1], "content": " ".join(words[2:])}
                result = await self.call("call_tool", {"tool": "agent_ask", "input": question})
                await self.say(task, "text", text=f"{words[1]} says: {result['output']['text']}")
            elif words[:1] == ["delete"]:
                await self.say(task, "tool_call", id="1", name="delete", input=json.dumps(words[1:]))
                await self.say(task, "approval_requested", id="1", name="delete", input=json.dumps(words[1:]))
                decided = await self.news[task].get()
                state = "completed" if decided["approved"] else "denied"
                await self.say(task, "tool_state", id="1", state=state)
                await self.say(task, "text", text=state)
            elif words[:1] == ["wait"]:
                await self.say(task, "text", text="waiting ")
                injected = await self.news[task].get()
                await self.say(task, "text", text=injected["content"])
            else:
                for word in words:
                    await self.say(task, "text", text=word + " ")
            await self.say(task, "done")
        except asyncio.CancelledError:
            await self.say(task, "cancelled", reason="as you wish")
        except Exception as error:  # whatever goes wrong is the end of the task
            await self.say(task, "failed", fault={"code": "internal", "message": str(error)})
        finally:
            self.tasks.pop(task, None)
            self.news.pop(task, None)

    async def event(self, e):
        task, kind, body = e["task"], e["kind"], e["body"]
        if kind == "opened":
            self.news[task] = asyncio.Queue()
            self.tasks[task] = body["request"]
        elif kind == "assigned":
            self.tasks[task] = asyncio.create_task(self.work(task, self.tasks[task]))
        elif task not in self.tasks:
            return  # it has just ended
        elif kind == "approval_decided":
            self.news[task].put_nowait(body)
        elif kind == "injected":
            await self.say(task, "injection_answered", id=body["id"], accepted=True)
            self.news[task].put_nowait(body)
        elif kind in ("cancel_requested", "done", "failed", "cancelled"):
            self.tasks[task].cancel()

    async def frame(self, line):
        frame = json.loads(line)
        if "event" in frame:
            await self.event(frame["event"])
        elif "result" in frame:
            call = self.calls[frame["result"]["id"]]
            if not call.done():  # as it is when its task was cancelled
                call.set_result(frame["result"])
        elif "error" in frame:
            error = frame["error"]
            call = self.calls.get(error.get("id"))
            if call and not call.done():
                call.set_exception(RuntimeError(error["fault"]["message"]))
            elif not call:
                print("the hub refused a frame:", error, file=sys.stderr)


async def join(agent, card):
    """Joins. An agent that the hub refuses has nothing to do: it ends."""
    try:
        joined = await agent.call("join", {"card": card})
    except RuntimeError as refused:
        print("the hub refused the agent:", refused, file=sys.stderr)
        os._exit(1)  # of a task, sys.exit would leave a trace
    print("joined as", joined["agent"], file=sys.stderr)


async def over_stdio():
    async def send(frame):
        print(json.dumps(frame), flush=True)

    agent, loop = Agent(send), asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=64 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    joining = asyncio.create_task(join(agent, {**CARD, "id": ""}))
    while line := await lines.readline():
        await agent.frame(line)
    joining.cancel()


async def over_websocket(url):
    try:
        import websockets
    except ImportError:
        sys.exit("the package websockets is missing: pip install websockets")
    # A token goes as a subprotocol, as from a browser: the name of the argument for headers
    # depends on the version of the package.
    offers = None
    if token := os.environ.get("DRAGOMAN_TOKEN"):
        offers = ["dragoman", "dragoman.token." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")]
    try:
        async with websockets.connect(url, max_size=None, subprotocols=offers) as socket:
            agent = Agent(lambda frame: socket.send(json.dumps(frame)))
            joining = asyncio.create_task(join(agent, CARD))
            async for message in socket:
                await agent.frame(message)
            joining.cancel()
        print("the hub has closed the connection:", socket.close_reason or socket.close_code, file=sys.stderr)
    except (OSError, websockets.WebSocketException) as error:
        hint = "; set DRAGOMAN_TOKEN to a valid token of this hub" if "401" in str(error) else ""
        sys.exit(f"{url}: {error}{hint}")


asyncio.run(over_websocket(sys.argv[1]) if len(sys.argv) > 1 else over_stdio())
