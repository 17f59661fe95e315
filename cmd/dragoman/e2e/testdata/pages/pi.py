"""Stands in for `pi --mode rpc`: it says the prompt in capitals."""
import json
import sys


def send(**message):
    print(json.dumps(message), flush=True)


def reply(command, **data):
    send(id=command["id"], type="response", command=command["type"], success=True, data=data)


for line in sys.stdin:
    command = json.loads(line)
    kind = command["type"]
    if kind == "get_state":
        reply(command, isStreaming=False, isCompacting=False, pendingMessageCount=0, sessionId="s", messageCount=0, model={"id": "m1", "provider": "stub"})
    elif kind == "prompt":
        reply(command)
        said = {"role": "assistant", "content": [{"type": "text", "text": command["message"].upper()}], "stopReason": "stop", "usage": {"input": 1, "output": 1}}
        send(type="agent_start")
        send(type="message_update", message=said, assistantMessageEvent={"type": "text_delta", "contentIndex": 0, "delta": said["content"][0]["text"]})
        send(type="message_end", message=said)
        send(type="agent_end", messages=[said])
        send(type="agent_settled")
    else:
        reply(command)
