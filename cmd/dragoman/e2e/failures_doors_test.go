package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// surface is a place where HTTP comes in. A socket is asked to become a WebSocket.
type surface struct {
	addr, method, path, body string
	socket                   bool
}

// surfaces are all of them, on a hub that plays for KEY.
func surfaces(s *stage, key string) []surface {
	web, pi := s.service.Addresses().HTTP, s.service.Addresses().Pi
	task := `{"to":"actor","content":"say ` + key + `"}`
	query := `{"v":1,"id":"` + key + `","from":"page","to":"actor","kind":"query","payload":{"question":"say ` + key + `"}}`
	return []surface{
		{web, http.MethodGet, "/v1/agents", "", false},
		{web, http.MethodPost, "/v1/tasks", task, false},
		{web, http.MethodPost, "/v1/notices", `{"to":"actor","topic":"x","data":"say ` + key + `"}`, false},
		{web, http.MethodGet, "/v1/events", "", false},
		{web, http.MethodPost, "/acp", query, false},
		{web, http.MethodGet, "/acp?agent_id=page", "", false},
		{web, http.MethodGet, "/healthz", "", false},
		{web, http.MethodGet, "/ws/agent", "", true},
		{web, http.MethodGet, "/ws/acp", "", true},
		{web, http.MethodGet, "/ws/pi", "", true},
		{pi, http.MethodGet, "/", "", true},
		{pi, http.MethodGet, "/anything", "", true},
	}
}

// knock asks at a surface, in the name of a host and of a page, and returns the
// status.
func (f surface) knock(t *testing.T, host, origin string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, f.method, "http://"+f.addr+f.path, strings.NewReader(f.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	if f.socket {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Version", "13")
		r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestWebPageDrivesALocalHub(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "actor", 8)
	key := s.key()
	for _, f := range surfaces(s, key) {
		_, port, _ := strings.Cut(f.addr, ":")
		for name, page := range map[string]struct{ host, origin string }{
			"a name that was rebound":         {"evil.example:" + port, ""},
			"a rebound page":                  {"evil.example:" + port, "http://evil.example:" + port},
			"a page from elsewhere":           {f.addr, "https://evil.example"},
			"a page that hides where from":    {f.addr, "null"},
			"a page that looks like one here": {f.addr, "http://127.0.0.1.evil.example:" + port},
			"a page of another local server":  {f.addr, "http://127.0.0.1:1"},
		} {
			if got := f.knock(t, page.host, page.origin); got != http.StatusForbidden && got != http.StatusMisdirectedRequest {
				t.Errorf("%s at %s %s: got %d, want it turned away (%d or %d)", name, f.method, f.path, got, http.StatusForbidden, http.StatusMisdirectedRequest)
			}
		}
	}
	if _, opened := s.posted(key + " opened"); opened {
		t.Error("got a task that a page asked for, want none")
	}
	// A program, and the hub's own page, get in at the same surfaces.
	for _, f := range surfaces(s, s.key()) {
		want := http.StatusOK
		if f.socket {
			want = http.StatusSwitchingProtocols
		}
		for _, origin := range []string{"", "http://" + f.addr} {
			if f.method == http.MethodPost && origin != "" {
				continue // the same envelope twice is a conflict
			}
			if got := f.knock(t, f.addr, origin); got != want && got != http.StatusCreated {
				t.Errorf("%s %s from origin %q: got %d, want %d", f.method, f.path, origin, got, want)
			}
		}
	}
}

func TestANameThatMayBeUsedTakesNoOtherAway(t *testing.T) {
	s := newStage(t, func(c *config.Config) {
		c.Hosts, c.Origins = []string{"hub.example"}, []string{"https://console.example"}
	})
	for _, f := range surfaces(s, s.key()) {
		if !f.socket {
			continue
		}
		for _, host := range []string{"hub.example", f.addr, "localhost", "[::1]"} {
			if got := f.knock(t, host, ""); got != http.StatusSwitchingProtocols {
				t.Errorf("%s by the name %s: got %d, want %d", f.path, host, got, http.StatusSwitchingProtocols)
			}
		}
		if got := f.knock(t, "hub.example", "https://console.example"); got != http.StatusSwitchingProtocols {
			t.Errorf("%s from the page that may: got %d, want %d", f.path, got, http.StatusSwitchingProtocols)
		}
		if got := f.knock(t, "hub.example", "https://evil.example"); got == http.StatusSwitchingProtocols {
			t.Errorf("%s from a page that may not: got in, want it turned away", f.path)
		}
	}
}

// socket is a WebSocket of which a test writes and reads the frames.
type socket struct {
	t    *testing.T
	conn *ws.Conn
}

func openSocket(t *testing.T, addr, path string, header http.Header) (*socket, error) {
	t.Helper()
	conn, err := ws.Dial(t.Context(), "ws://"+addr+path, ws.DialOptions{Limits: ws.Limits{ReadLimit: 10 << 20}, Header: header})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close(link.Reason{Cause: link.Normal}) })
	return &socket{t, conn}, nil
}

// says sends a frame and returns the first that comes back with one of the parts.
func (c *socket) says(frame string, parts ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), watchdog)
	defer cancel()
	if err := c.conn.Send(ctx, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
	for {
		answer, err := c.conn.Receive(ctx)
		if err != nil {
			return err.Error()
		}
		for _, part := range parts {
			if strings.Contains(string(answer), part) {
				return string(answer)
			}
		}
	}
}

// posts sends a body and returns the status and the answer.
func posts(t *testing.T, addr, path, body string, header http.Header) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// Who sends is said in one place. Where a header and a body could both say it, they
// must agree, and nothing is done in either name when they do not.
func TestHeaderAndBodyDisagree(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, acp.Dialect, "actor", 8)
	addr := s.service.Addresses().HTTP
	kit := func() http.Header { return http.Header{"X-Agent-Id": {"kit"}} }
	query := func(key string) string {
		return `{"v":1,"id":"` + key + `","from":"mallory","to":"actor","kind":"query","payload":{"question":"say ` + key + `"}}`
	}
	for name, try := range map[string]func(t *testing.T, key string) (got, want string){
		"Parallax": func(t *testing.T, _ string) (string, string) {
			c, err := openSocket(t, addr, "/ws/agent", kit())
			if err != nil {
				t.Fatal(err)
			}
			return c.says(`{"type":"register","id":"1","payload":{"agentId":"mallory","capabilities":["x"]}}`, `"1"`), `"type":"error"`
		},
		"ACP over WebSocket": func(t *testing.T, key string) (string, string) {
			c, err := openSocket(t, addr, "/ws/acp", kit())
			if err != nil {
				t.Fatal(err)
			}
			return c.says(query(key), `"`+key+`"`), `"not_authorized"`
		},
		"ACP over WebSocket, header and address": func(t *testing.T, _ string) (string, string) {
			_, err := openSocket(t, addr, "/ws/acp?agent_id=mallory", kit())
			return fmt.Sprint(err), "403"
		},
		"ACP over HTTP": func(t *testing.T, key string) (string, string) {
			status, answer := posts(t, addr, "/acp", query(key), kit())
			return fmt.Sprint(status, answer), `"not_authorized"`
		},
		"ACP over HTTP, address and body": func(t *testing.T, key string) (string, string) {
			status, answer := posts(t, addr, "/acp?agent_id=kit", query(key), nil)
			return fmt.Sprint(status, answer), `"not_authorized"`
		},
		"ACP over HTTP, header and address": func(t *testing.T, key string) (string, string) {
			status, answer := posts(t, addr, "/acp?agent_id=mallory", query(key), kit())
			return fmt.Sprint(status, answer), `"not_authorized"`
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := s.key()
			if got, want := try(t, key); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s in it", got, want)
			}
			for _, id := range []core.AgentID{"kit", "mallory"} {
				if _, here := s.service.Hub().Agent(id); here {
					t.Errorf("got the agent %s, want nobody under either name", id)
				}
			}
			if _, opened := s.posted(key + " opened"); opened {
				t.Error("got a task, want none in either name")
			}
		})
	}
}

// Texts of which one reader takes one thing and another reader another are refused
// at every door that takes JSON, before anything is routed.
func TestTwoReadersDisagreeOnOneJSONText(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, parallax.Dialect, "actor", 8)
	s.cast(t, parallax.Dialect, "other", 8)
	addr := s.service.Addresses().HTTP
	asker := connectCovenAgent(t, s, "caller")
	defer asker.leave()
	dialed := func(addr, path string) *socket {
		c, err := openSocket(t, addr, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	acpPeer, piPeer, parallaxPeer := dialed(addr, "/ws/acp"), dialed(s.service.Addresses().Pi, "/"), dialed(addr, "/ws/agent")
	if got := parallaxPeer.says(`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"extensions":["task_request"]}}}`, "registered"); !strings.Contains(got, "registered") {
		t.Fatal(got)
	}
	// Each door asks an agent to play; AMBIGUOUS stands for members that say to whom.
	doors := map[string]struct {
		frame string
		send  func(t *testing.T, frame string) string
		want  string
	}{
		"REST": {`{AMBIGUOUS,"content":"say KEY"}`, func(t *testing.T, frame string) string {
			status, answer := posts(t, addr, "/v1/tasks", frame, nil)
			return fmt.Sprint(status, answer)
		}, `400{`},
		"ACP over HTTP": {
			`{"v":1,"id":"KEY","from":"x",AMBIGUOUS,"kind":"query","payload":{"question":"say KEY"}}`, func(t *testing.T, frame string) string {
				status, answer := posts(t, addr, "/acp", frame, nil)
				return fmt.Sprint(status, answer)
			}, `"invalid_envelope"`,
		},
		"ACP over WebSocket": {
			`{"v":1,"id":"KEY","from":"y",AMBIGUOUS,"kind":"query","payload":{"question":"say KEY"}}`,
			func(_ *testing.T, frame string) string {
				return acpPeer.says(frame, `"kind":"error"`, `"kind":"response"`)
			}, `"invalid_envelope"`,
		},
		"Parallax": {
			`{"type":"task_request","id":"KEY","payload":{AMBIGUOUS,"input":{"content":"say KEY"}}}`,
			func(_ *testing.T, frame string) string {
				return parallaxPeer.says(frame, `"type":"error"`, `"type":"task_result"`)
			}, `"INVALID_MESSAGE"`,
		},
		"pi": {
			`{"id":"KEY","type":"create_session","sessionId":"KEY",AMBIGUOUS}`,
			func(_ *testing.T, frame string) string { return piPeer.says(frame, `"type":"response"`) }, `"success":false`,
		},
		"Coven tool": {`{AMBIGUOUS,"content":"say KEY"}`, func(t *testing.T, frame string) string {
			told := asker.call("agent_ask", json.RawMessage(frame)).outcome(t)
			return fmt.Sprintf("%+v", told)
		}, `Code:invalid`},
	}
	for name, d := range doors {
		member := "to"
		if name == "pi" {
			member = "agent"
		}
		for trick, ambiguous := range map[string]string{
			"a key twice":         `"M":"actor","M":"other"`,
			"a key escaped":       `"M":"actor","\u00HEX":"other"`,
			"a key in two cases":  `"M":"actor","UPPER":"other"`,
			"a key with a NUL":    `"M":"actor","M\u0000":"other"`,
			"a key twice, deeper": `"M":"actor","x":{"M":1,"M":2}`,
		} {
			if trick == "a key escaped" { // "to" and "\u0074o" are the same key
				ambiguous = strings.Replace(ambiguous, "HEX", fmt.Sprintf("%02x%s", member[0], member[1:]), 1)
			}
			ambiguous = strings.NewReplacer("UPPER", strings.ToUpper(member), "M", member).Replace(ambiguous)
			t.Run(name+", "+trick, func(t *testing.T) {
				key := s.key()
				frame := strings.NewReplacer("AMBIGUOUS", ambiguous, "KEY", key).Replace(d.frame)
				if got := d.send(t, frame); !strings.Contains(got, d.want) {
					t.Errorf("%s: got %.300s, want %s in it", frame, got, d.want)
				}
				if _, opened := s.posted(key + " opened"); opened {
					t.Errorf("%s: got a task, want nothing routed", frame)
				}
			})
		}
	}
}
