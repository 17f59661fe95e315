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

// endpoint is an HTTP endpoint. If upgrade is set, it is asked to become a WebSocket.
type endpoint struct {
	addr, method, path, body string
	upgrade                  bool
}

// endpoints are all of them, with requests that carry the key.
func endpoints(h *testHub, key string) []endpoint {
	web, pi := h.service.Addresses().HTTP, h.service.Addresses().Pi
	task := `{"to":"actor","content":"say ` + key + `"}`
	query := `{"v":1,"id":"` + key + `","from":"page","to":"actor","kind":"query","payload":{"question":"say ` + key + `"}}`
	return []endpoint{
		{web, http.MethodGet, "/v1/agents", "", false},
		{web, http.MethodPost, "/v1/tasks", task, false},
		{web, http.MethodPost, "/v1/notices", `{"to":"actor","topic":"x","data":"say ` + key + `"}`, false},
		{web, http.MethodGet, "/v1/events", "", false},
		{web, http.MethodPost, "/acp", query, false},
		{web, http.MethodGet, "/acp?agent_id=page", "", false},
		{web, http.MethodGet, "/healthz", "", false},
		{web, http.MethodGet, "/ws/agent", "", true},
		{web, http.MethodGet, "/ws/acp", "", true},
		{web, http.MethodGet, "/ws/editor?agent=x", "", true},
		{web, http.MethodGet, "/ws/pi", "", true},
		{pi, http.MethodGet, "/", "", true},
		{pi, http.MethodGet, "/anything", "", true},
	}
}

// do sends a request with the host and the origin and returns the status.
func (f endpoint) do(t *testing.T, host, origin string) int {
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
	if f.upgrade {
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
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "actor", 8)
	key := h.key()
	for _, f := range endpoints(h, key) {
		_, port, _ := strings.Cut(f.addr, ":")
		for name, page := range map[string]struct{ host, origin string }{
			"a name that was rebound":         {"evil.example:" + port, ""},
			"a rebound page":                  {"evil.example:" + port, "http://evil.example:" + port},
			"a page from elsewhere":           {f.addr, "https://evil.example"},
			"a page that hides where from":    {f.addr, "null"},
			"a page that looks like one here": {f.addr, "http://127.0.0.1.evil.example:" + port},
			"a page of another local server":  {f.addr, "http://127.0.0.1:1"},
		} {
			if got := f.do(t, page.host, page.origin); got != http.StatusForbidden && got != http.StatusMisdirectedRequest {
				t.Errorf("%s at %s %s: got %d, want it refused (%d or %d)", name, f.method, f.path, got, http.StatusForbidden, http.StatusMisdirectedRequest)
			}
		}
	}
	if _, opened := h.signalled(key + " opened"); opened {
		t.Error("got a task requested by a page, want none")
	}
	// A program, and the hub's own page, are let in at the same endpoints.
	for _, f := range endpoints(h, h.key()) {
		want := http.StatusOK
		if f.upgrade {
			want = http.StatusSwitchingProtocols
		}
		for _, origin := range []string{"", "http://" + f.addr} {
			if f.method == http.MethodPost && origin != "" {
				continue // the same envelope twice is a conflict
			}
			if got := f.do(t, f.addr, origin); got != want && got != http.StatusCreated {
				t.Errorf("%s %s from origin %q: got %d, want %d", f.method, f.path, origin, got, want)
			}
		}
	}
}

func TestAConfiguredHostKeepsTheDefaultsAllowed(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		c.Hosts, c.Origins = []string{"hub.example"}, []string{"https://console.example"}
	})
	for _, f := range endpoints(h, h.key()) {
		if !f.upgrade {
			continue
		}
		for _, host := range []string{"hub.example", f.addr, "localhost", "[::1]"} {
			if got := f.do(t, host, ""); got != http.StatusSwitchingProtocols {
				t.Errorf("%s by the name %s: got %d, want %d", f.path, host, got, http.StatusSwitchingProtocols)
			}
		}
		if got := f.do(t, "hub.example", "https://console.example"); got != http.StatusSwitchingProtocols {
			t.Errorf("%s from the page that may: got %d, want %d", f.path, got, http.StatusSwitchingProtocols)
		}
		if got := f.do(t, "hub.example", "https://evil.example"); got == http.StatusSwitchingProtocols {
			t.Errorf("%s from a page that may not: got in, want it refused", f.path)
		}
	}
}

// webSocket is a WebSocket whose frames a test reads and writes.
type webSocket struct {
	t    *testing.T
	conn *ws.Conn
}

func openWebSocket(t *testing.T, addr, path string, header http.Header) (*webSocket, error) {
	t.Helper()
	conn, err := ws.Dial(t.Context(), "ws://"+addr+path, ws.DialOptions{Limits: ws.Limits{ReadLimit: 10 << 20}, Header: header})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close(link.Reason{Cause: link.Normal}) })
	return &webSocket{t, conn}, nil
}

// roundTrip sends a frame and returns the first received frame that contains one of the parts.
func (c *webSocket) roundTrip(frame string, parts ...string) string {
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

// post sends a body and returns the status and the answer.
func post(t *testing.T, addr, path, body string, header http.Header) (int, string) {
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

// If a header and a body both name the sender they must agree; otherwise nothing is done in either
// name.
func TestHeaderAndBodyDisagree(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, acp.Dialect, "actor", 8)
	addr := h.service.Addresses().HTTP
	kit := func() http.Header { return http.Header{"X-Agent-Id": {"kit"}} }
	query := func(key string) string {
		return `{"v":1,"id":"` + key + `","from":"mallory","to":"actor","kind":"query","payload":{"question":"say ` + key + `"}}`
	}
	for name, try := range map[string]func(t *testing.T, key string) (got, want string){
		"Parallax": func(t *testing.T, _ string) (string, string) {
			c, err := openWebSocket(t, addr, "/ws/agent", kit())
			if err != nil {
				t.Fatal(err)
			}
			return c.roundTrip(`{"type":"register","id":"1","payload":{"agentId":"mallory","capabilities":["x"]}}`, `"1"`), `"type":"error"`
		},
		"ACP over WebSocket": func(t *testing.T, key string) (string, string) {
			c, err := openWebSocket(t, addr, "/ws/acp", kit())
			if err != nil {
				t.Fatal(err)
			}
			return c.roundTrip(query(key), `"`+key+`"`), `"not_authorized"`
		},
		"ACP over WebSocket, header and address": func(t *testing.T, _ string) (string, string) {
			_, err := openWebSocket(t, addr, "/ws/acp?agent_id=mallory", kit())
			return fmt.Sprint(err), "403"
		},
		"ACP over HTTP": func(t *testing.T, key string) (string, string) {
			status, answer := post(t, addr, "/acp", query(key), kit())
			return fmt.Sprint(status, answer), `"not_authorized"`
		},
		"ACP over HTTP, address and body": func(t *testing.T, key string) (string, string) {
			status, answer := post(t, addr, "/acp?agent_id=kit", query(key), nil)
			return fmt.Sprint(status, answer), `"not_authorized"`
		},
		"ACP over HTTP, header and address": func(t *testing.T, key string) (string, string) {
			status, answer := post(t, addr, "/acp?agent_id=mallory", query(key), kit())
			return fmt.Sprint(status, answer), `"not_authorized"`
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := h.key()
			if got, want := try(t, key); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s in it", got, want)
			}
			for _, id := range []core.AgentID{"kit", "mallory"} {
				if _, here := h.service.Hub().Agent(core.Principal{Operator: true}, id); here {
					t.Errorf("got the agent %s, want neither", id)
				}
			}
			if _, opened := h.signalled(key + " opened"); opened {
				t.Error("got a task, want none")
			}
		})
	}
}

// Texts that two JSON readers may understand differently are refused wherever JSON comes in, before
// anything is routed.
func TestTwoReadersDisagreeOnOneJSONText(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, parallax.Dialect, "actor", 8)
	h.startAgent(t, parallax.Dialect, "other", 8)
	addr := h.service.Addresses().HTTP
	asker := connectCovenAgent(t, h, "caller")
	defer asker.leave()
	dialed := func(addr, path string) *webSocket {
		c, err := openWebSocket(t, addr, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	acpPeer, piPeer, parallaxPeer := dialed(addr, "/ws/acp"), dialed(h.service.Addresses().Pi, "/"), dialed(addr, "/ws/agent")
	if got := parallaxPeer.roundTrip(`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"extensions":["task_request"]}}}`, "registered"); !strings.Contains(got, "registered") {
		t.Fatal(got)
	}
	// Each endpoint sends an instruction; AMBIGUOUS stands for members that name the agent.
	targets := map[string]struct {
		frame string
		send  func(t *testing.T, frame string) string
		want  string
	}{
		"REST": {`{AMBIGUOUS,"content":"say KEY"}`, func(t *testing.T, frame string) string {
			status, answer := post(t, addr, "/v1/tasks", frame, nil)
			return fmt.Sprint(status, answer)
		}, `400{`},
		"ACP over HTTP": {
			`{"v":1,"id":"KEY","from":"x",AMBIGUOUS,"kind":"query","payload":{"question":"say KEY"}}`, func(t *testing.T, frame string) string {
				status, answer := post(t, addr, "/acp", frame, nil)
				return fmt.Sprint(status, answer)
			}, `"invalid_envelope"`,
		},
		"ACP over WebSocket": {
			`{"v":1,"id":"KEY","from":"y",AMBIGUOUS,"kind":"query","payload":{"question":"say KEY"}}`,
			func(_ *testing.T, frame string) string {
				return acpPeer.roundTrip(frame, `"kind":"error"`, `"kind":"response"`)
			}, `"invalid_envelope"`,
		},
		"Parallax": {
			`{"type":"task_request","id":"KEY","payload":{AMBIGUOUS,"input":{"content":"say KEY"}}}`,
			func(_ *testing.T, frame string) string {
				return parallaxPeer.roundTrip(frame, `"type":"error"`, `"type":"task_result"`)
			}, `"INVALID_MESSAGE"`,
		},
		"pi": {
			`{"id":"KEY","type":"create_session","sessionId":"KEY",AMBIGUOUS}`,
			func(_ *testing.T, frame string) string { return piPeer.roundTrip(frame, `"type":"response"`) }, `"success":false`,
		},
		"Coven tool": {`{AMBIGUOUS,"content":"say KEY"}`, func(t *testing.T, frame string) string {
			result := asker.call("agent_ask", json.RawMessage(frame)).wait(t)
			return fmt.Sprintf("%+v", result)
		}, `Code:invalid`},
	}
	for name, d := range targets {
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
				key := h.key()
				frame := strings.NewReplacer("AMBIGUOUS", ambiguous, "KEY", key).Replace(d.frame)
				if got := d.send(t, frame); !strings.Contains(got, d.want) {
					t.Errorf("%s: got %.300s, want %s in it", frame, got, d.want)
				}
				if _, opened := h.signalled(key + " opened"); opened {
					t.Errorf("%s: got a task, want nothing routed", frame)
				}
			})
		}
	}
}
