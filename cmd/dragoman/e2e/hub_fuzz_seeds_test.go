package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// seed is a meaningful beginning for the fuzzer: settings of the hub, and who says what. A phrase
// is found by a part of its text; its choice stands behind "@".
type seed struct {
	about    string
	want     string // who asked whom, and how it ended
	settings byte
	steps    []string
}

var hubSeeds = []seed{
	{"a Coven agent is asked through every door", "native-coven done, rest-coven done, pi-coven done, editor-coven done, coven-coven failed, a2a-coven done, mcp-coven done", 0, []string{
		"coven fold: connects", "coven fold: max_concurrent=2", "native kit: connects", `native kit: "act":"open"@0`, "coven fold: one@0", "http: POST /v1/tasks?wait=true@0",
		"coven fold: done@8", "coven fold: done@0", "pi kit: connects", "pi kit: create_session@0", "pi kit: switch_session", "pi kit: prompt", "coven fold: approval_request@0",
		"http: decisions@0", "coven fold: done@0", "editor zed: connects", "editor zed: initialize", "editor zed: session/new", "editor zed: session/prompt", "coven fold: done@0",
		"client ada: connects", "client ada: stream_events", "client ada: k1", "coven fold: error@0", "http: SendMessage@0", "coven fold: done@0", "http: agent_ask@0", "coven fold: done@0",
	}},
	{"a chain through four dialects", "rest-coven done, coven-parallax done, parallax-acp done, acp-native done", recordedEnds, []string{
		"coven fold: connects", "coven fold: max_concurrent=2", "parallax middle: connects", "parallax middle: task_request", "acp family: connects", "acp family: capabilities",
		"native poet: connects", "native poet: max_concurrent", "http: POST /v1/tasks@0", "coven fold: agent_ask@1", `parallax middle: "q"@2`, `acp family: q9@3`,
		"native poet: approval_requested@0", "native kit: connects", `native kit: "e"@0`, `native poet: "done"@0`, "time: 20ms", "acp family: response@8", "time: 20ms", "parallax middle: completed@16", "time: 20ms", "coven fold: done@24", "time: 12s",
	}},
	{"an agent is cut off, a reader resumes, a question is cancelled", "native-native failed, native-native cancelled, native-native failed", fewFinished | shortQueue, []string{
		"native poet: connects", "native poet: max_concurrent", "native kit: connects", `native kit: "keep"@3`, "native poet: text@0", "native kit: is cut off", "native poet: text@0",
		"native kit: connects", `native kit: "read"@0`, `native kit: "a"@3`, "http: inject@0", "native poet: injection_answered@0", `native kit: "cancel"@0`, "native poet: cancelled@0",
		"native poet: is cut off", "native poet: connects", "native poet: max_concurrent", `native kit: "a"@3`, "native poet: failed@0", "native kit: leaves",
	}},
	{"nobody ends a request, and an agent stops to read", "acp-parallax failed, acp-parallax cancelled, rest failed", noRetries, []string{
		"parallax middle: connects", "parallax middle: task_request", "acp kim: connects", "acp kim: hello", `acp kim: "query"@1`, `acp kim: "delegate"@1`, "parallax middle: task_accepted@0", "acp kim: cancel@1",
		"parallax middle: stops reading", "http: deadline_ms@1", "http: GET /v1/events", "time: 12s", "parallax middle: is cut off", "time: 6m",
	}},
	{"the hub stops while tasks run and a tool call waits", "rest done, rest-coven, a2a-coven, rest-editor, coven", stopsEarly, []string{
		"native kit: connects", `native kit: "provide"`, "coven fold: connects", "coven fold: max_concurrent=2", "coven fold: thermometer", "native eye: connects", "native eye: watch_all", "native eye: subscribe",
		"http: notices", "http: POST /v1/tasks@0", "http: SendStreamingMessage@0", "editor-agent gem: connects", "editor-agent gem: protocolVersion", "http: POST /v1/tasks@6", "coven fold: agent_delegate@6",
	}},
}

// input returns the seed as an input of the fuzzer. It panics if there is no such phrase.
func (s seed) input() []byte {
	input := []byte{s.settings}
	for _, step := range s.steps {
		var choice byte
		text, at, _ := strings.Cut(step, "@")
		fmt.Sscan(at, &choice)
		peer, part, _ := strings.Cut(text, ": ")
		i := slices.IndexFunc(phrases, func(p phrase) bool { return p.peer == peer && strings.Contains(p.text, part) })
		if i < 0 {
			panic("no phrase is " + step)
		}
		input = append(input, byte(i), choice, 0)
	}
	return input
}

func TestTheSeedsOfFuzzHubReachEveryDoor(t *testing.T) {
	if n := len(phrases); n > 256 {
		t.Errorf("got %d phrases, want at most 256: a byte has their number", n)
	}
	for _, s := range hubSeeds {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, s.settings)
			defer c.end()
			for op := range slices.Chunk(s.input()[1:], 3) {
				c.do(op[0], op[1], op[2])
			}
			if got := c.tasks.summary(); got != s.want {
				t.Errorf("%s: got %s, want %s", s.about, got, s.want)
			}
			c.settle()
		})
	}
}
