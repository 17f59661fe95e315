//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Stand-ins for agents that say what they are given, in the words of their dialects.
const (
	editorEcho = `
import json, sys
def send(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {})
    if m.get("method") == "initialize":
        send(id=m["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
    elif m.get("method") == "session/new":
        send(id=m["id"], result={"sessionId": "s%s" % m["id"]})
    elif m.get("method") == "session/prompt":
        text = "\n".join(b["text"] for b in p["prompt"])
        send(method="session/update", params={"sessionId": p["sessionId"], "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
        send(id=m["id"], result={"stopReason": "end_turn"})
    elif "id" in m and "method" in m:
        send(id=m["id"], error={"code": -32601, "message": "unknown"})
`
	nativeEcho = `
import json, sys
def send(m): print(json.dumps(m), flush=True)
send({"call": {"id": "1", "act": "join", "command": {"card": {"id": "", "features": ["files"]}}}})
asked = {}
for line in sys.stdin:
    e = json.loads(line).get("event", {})
    if e.get("kind") == "opened":
        asked[e["task"]] = e["body"]["request"]
    elif e.get("kind") == "assigned":
        send({"event": {"task": e["task"], "kind": "text", "body": {"text": json.dumps(asked[e["task"]])}}})
        send({"event": {"task": e["task"], "kind": "done", "body": {}}})
`
)

// Whatever the dialect of the agent that goes on: it gets what was said, the files and where the other one works, and
// the log says so. A session gets nothing of it twice.
func TestAnAgentOfEveryDialectGoesOnWithAConversation(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	dir, there := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pi, err := filepath.Abs("testdata/pages/pi.py")
	if err != nil {
		t.Fatal(err)
	}
	h := startHub(t, "--config", write("dragoman.yaml", `
agents:
  - {name: first, cwd: "`+there+`", command: [sh, -c, "echo the answer is blue"]}
  - {name: exec, command: [sh, -c, "cat $DRAGOMAN_REQUEST"]}
  - {name: editor, dialect: editor, command: [python3, "`+write("editor.py", editorEcho)+`"]}
  - {name: pi-rpc, dialect: pi-rpc, command: [python3, "`+pi+`"]}
  - {name: native, dialect: native, command: [python3, "`+write("native.py", nativeEcho)+`"]}
`))
	ask := func(agent, thread, question string, more ...string) (out, note string) {
		t.Helper()
		code, out, note := run(t, append([]string{"ask", agent, question, "--thread", thread, "--wait", "--hub", "http://" + h.http}, more...)...)
		if code != 0 {
			t.Fatalf("%s: got %d and %s, want an answer", agent, code, note)
		}
		return strings.ToLower(out), note
	}
	plan, picture := write("plan.md", "our plan is secret"), write("picture.bin", "\x00\x01")
	for _, agent := range []string{"exec", "editor", "pi-rpc", "native"} {
		ask("first", agent, "which colour?", "--file", plan, "--file", picture)
		out, note := ask(agent, agent, "and now?")
		for _, want := range []string{"which colour?", "the answer is blue", strings.ToLower("working directory is " + there), "picture.bin", "and now?"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: got %q, want %q in it", agent, out, want)
			}
		}
		if inJSON := "b3vyihbsyw4gaxmgc2vjcmv0"; !strings.Contains(out, "our plan is secret") && !strings.Contains(out, inJSON) {
			t.Errorf("%s: got %q, want what is in the file", agent, out)
		}
		if want := "[handed over from first with 2 turns and 2 files]"; !strings.Contains(note, want) {
			t.Errorf("%s: got %q beside the answer, want %q", agent, note, want)
		}
		again, note := ask(agent, agent, "and then?")
		for _, twice := range []string{"plan.md", "picture.bin"} {
			if strings.Contains(again, `"name":"`+twice) || strings.Contains(note, "handed over") {
				t.Errorf("%s, asked again: got %q and %q, want nothing handed over twice", agent, again, note)
			}
		}
		if (agent == "editor" || agent == "pi-rpc") && again != "and then?\n" {
			t.Errorf("%s, asked again: got %q, want the question alone: its session has the rest", agent, again)
		}
	}
}
