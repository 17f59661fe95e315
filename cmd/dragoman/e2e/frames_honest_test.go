package e2e

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	a2awire "github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// patientEditor says something and then waits for the cancel.
const patientEditor = `while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}';;
*'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}';;
*'"session/prompt"'*) echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"so far"}}}}';;
*'"session/cancel"'*) echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}';;
esac; done`

// What the dialect of an agent does not take is a frame of the requester that was refused, and an event
// for which that of the requester has no words one without a frame.
func TestTheFramesShowWhatADialectRefuses(t *testing.T) {
	t.Run("for the agent", func(t *testing.T) {
		h := newTestHub(t, func(c *config.Config) {
			keepFrames(c)
			c.Agents = config.Agents{{Name: "guide", Dialect: config.SpeaksEditor, Process: shellProcess(patientEditor)}}
		})
		stream := restReader(t, h, http.MethodPost, "/v1/tasks", `{"to":"guide","content":"look it up","keep":true}`)
		defer stream.Body.Close()
		path, events := stream.Header.Get("Location"), bufio.NewReader(stream.Body)
		await := func(kind string) {
			t.Helper()
			for line := ""; !strings.Contains(line, `"kind":"`+kind+`"`); {
				var err error
				if line, err = events.ReadString('\n'); err != nil {
					t.Fatalf("waiting for %s: %v", kind, err)
				}
			}
		}
		await("text")
		refused, err := http.Post(h.url()+path+"/inject", "application/json", strings.NewReader(`{"id":"i","content":"more"}`)) //nolint:noctx // the test ends it
		if err != nil {
			t.Fatal(err)
		}
		defer refused.Body.Close()
		if refused.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("got %s, want the agent to take no context", refused.Status)
		}
		h.post(t, path+"/cancel", `{"reason":"enough"}`)
		await("cancelled")
		h.wantFrames(t, "refused-for-the-agent")
	})
	t.Run("for the requester", func(t *testing.T) {
		h := newTestHub(t, func(c *config.Config) {
			keepFrames(c)
			c.Agents = config.Agents{{Name: "guide", Dialect: config.SpeaksEditor, Process: shellProcess(framedEditor)}}
		})
		asker := acpOverWebSocket().connect(t, h, "asker")
		t.Cleanup(asker.leave)
		asker.begin(query{to: "guide", content: "look it up"}).wait(t)
		h.wantFrames(t, "refused-for-the-requester")
	})
}

// Frames are in memory alone: a hub that was started again has the task, none of its frames, and says
// why.
func TestAHubThatWasStartedAgainSaysThatFramesAreGone(t *testing.T) {
	t.Setenv("DRAGOMAN_FRAMES_KEEP", "1000000")
	dir := t.TempDir()
	h := serveHub(t, dir, "always")
	runUsageTask(t, h.grpc, h.URL, core.Usage{Input: 1, Output: 1})
	var list struct{ Tasks []struct{ ID core.TaskID } }
	if err := h.Get(t.Context(), "/v1/tasks", &list); err != nil || len(list.Tasks) != 1 {
		t.Fatalf("got %d tasks and %v, want the one", len(list.Tasks), err)
	}
	id := list.Tasks[0].ID
	if found, err := h.Frames(t.Context(), id); err != nil || len(found.Frames) == 0 || found.Missing != "" {
		t.Errorf("before: got %d frames, missing %q and %v, want some and all", len(found.Frames), found.Missing, err)
	}
	h.kill()

	h = serveHub(t, dir, "always")
	defer h.kill()
	if found, err := h.Frames(t.Context(), id); err != nil || len(found.Frames) != 0 || found.Missing == "" {
		t.Errorf("after: got %d frames, missing %q and %v, want none, and why", len(found.Frames), found.Missing, err)
	}
	code, out, errs := run(t, "frames", string(id), "--hub", h.URL)
	if code != command.ExitDone {
		t.Fatalf("got %d and %s, want an answer", code, errs)
	}
	began := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	wantGolden(t, filepath.Join("testdata", "frames", "after-a-restart.txt"), began.ReplaceAllString(out+errs, "TIME"))
}

// What is configured as a secret, and what a requester tells the hub alone, is in no frame of any dialect.
func TestNoFrameOfAnyDialectShowsASecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-abcdefgh"
	keepFramesWithoutSecrets := func(c *config.Config) {
		keepFrames(c)
		c.Redact.Patterns = []string{`sk-[a-z]{8}`}
	}
	echo := func(_ context.Context, r core.Request, say func(core.Body) error) error {
		return say(core.Text{Text: "you said: " + r.Content})
	}
	for _, asks := range clientDialects() {
		t.Run(asks.name, func(t *testing.T) {
			h := newTestHub(t, keepFramesWithoutSecrets)
			h.startAgentWith(t, native.Dialect, "guide", echo)
			asker := asks.connect(t, h, "asker")
			t.Cleanup(asker.leave)
			asker.begin(query{to: "guide", content: "it is " + secret}).wait(t)
			h.wantNoFrameWith(t, secret, 2)
		})
	}
	for _, dialect := range []string{coven.Name, "parallax", "acp", gatewayName} {
		t.Run("agent "+dialect, func(t *testing.T) {
			h := newTestHub(t, keepFramesWithoutSecrets)
			h.startAgentWith(t, dialect, "guide", echo)
			h.post(t, "/v1/tasks?wait=true", `{"to":"guide","content":"it is `+secret+`"}`)
			h.wantNoFrameWith(t, secret, 2)
		})
	}
	for _, a := range []config.Agent{
		{Dialect: config.SpeaksText, Process: shellProcess(`cat`)},
		{Dialect: config.SpeaksEditor, Process: shellProcess(strings.ReplaceAll(framedEditor, "It is here.", secret))},
		{Dialect: config.SpeaksPiRPC, Process: shellProcess(strings.ReplaceAll(framedPi, "It is here.", secret))},
		{Dialect: a2awire.Dialect},
	} {
		t.Run("hosted "+a.Dialect, func(t *testing.T) {
			if a.Dialect == a2awire.Dialect {
				far := newTestHub(t, nil)
				far.startAgentWith(t, native.Dialect, "kit", echo)
				a.URL = far.url() + "/a2a/kit"
			}
			a.Name = "guide"
			h := newTestHub(t, func(c *config.Config) {
				keepFramesWithoutSecrets(c)
				c.Agents = config.Agents{a}
			})
			h.post(t, "/v1/tasks?wait=true", `{"to":"guide","content":"it is `+secret+`"}`)
			text := h.wantNoFrameWith(t, secret, 2)
			for _, credential := range []string{core.TokenPrefix, "Authorization"} {
				if strings.Contains(text, credential) {
					t.Errorf("got %s in the frames, want no credential of the hub: %s", credential, text)
				}
			}
		})
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	t.Run("the receiver of pushes over A2A", func(t *testing.T) {
		h := newTestHub(t, func(c *config.Config) {
			keepFrames(c)
			c.A2A.PushTargets = "any"
		})
		h.startAgentWith(t, native.Dialect, "guide", echo)
		h.post(t, "/a2a/guide", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"taskPushNotificationConfig":{"url":"`+receiver.URL+`","token":"for-the-hub-alone"}}}}`)
		h.wantNoFrameWith(t, "for-the-hub-alone", 1)
	})
}

// wantNoFrameWith fails if a frame of the task of the guide has a text, and returns all frames. It waits
// until so many connections show that something was taken out.
func (h *testHub) wantNoFrameWith(t *testing.T, secret string, connections int) string {
	t.Helper()
	id := h.taskOf(t, "guide")
	for until := time.Now().Add(watchdog); ; {
		var all strings.Builder
		without := map[string]bool{}
		for _, f := range h.framesOf(t, id).Frames {
			all.Write(append(f.Frame, '\n'))
			if bytes.Contains(f.Frame, []byte("[redacted]")) || bytes.Contains(f.Frame, []byte("[not shown]")) {
				without[f.Connection] = true
			}
		}
		if len(without) < connections && time.Now().Before(until) {
			continue
		}
		if strings.Contains(all.String(), secret) || len(without) < connections {
			t.Errorf("got %s, want %s taken out of the frames of %d connections", all.String(), secret, connections)
		}
		return all.String()
	}
}
