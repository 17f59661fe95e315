package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// refuses expects that Run fails and says why.
func refuses(t *testing.T, opts client.Options, code core.Code, about ...string) {
	t.Helper()
	a := start(t, opts)
	select {
	case <-a.profiles:
		t.Fatal("Run got ready, want an error")
	case <-time.After(watchdog):
		t.Fatal("Run hangs")
	case err := <-a.over:
		var f *core.Fault
		if !errors.As(err, &f) || f.Code != code {
			t.Fatalf("Run: got %v, want %s", err, code)
		}
		for _, part := range about {
			if !strings.Contains(f.Message, part) {
				t.Errorf("Run: got %q, want it to say %q", f.Message, part)
			}
		}
	}
}

func TestACardThatCannotBeUsedSaysWhichFieldIsWrong(t *testing.T) {
	const face = `"supportedInterfaces":[{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]`
	for name, tt := range map[string]struct{ card, about string }{
		"no JSON":            {`<html>`, "not JSON"},
		"a list":             {`[]`, "object"},
		"no interfaces":      {`{"name":"x","description":"","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}`, "supportedInterfaces"},
		"0.3":                {`{"name":"x","url":"http://x/","protocolVersion":"0.3.0","preferredTransport":"JSONRPC"}`, "A2A 0.3.0"},
		"gRPC alone":         {`{"supportedInterfaces":[{"url":"h:1","protocolBinding":"GRPC","protocolVersion":"1.0"}]}`, `supportedInterfaces[0].protocolBinding: "GRPC"`},
		"version 0.3":        {`{"supportedInterfaces":[{"url":"http://h/","protocolBinding":"JSONRPC","protocolVersion":"0.3"}]}`, `supportedInterfaces[0].protocolVersion: "0.3" is not 1.0`},
		"a relative address": {`{"supportedInterfaces":[{"url":"/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, `supportedInterfaces[0].url`},
		"a text for a list":  {`{"supportedInterfaces":"none"}`, "supportedInterfaces: want"},
		"a flag as a text":   {`{` + face + `,"capabilities":{"streaming":"yes"}}`, "capabilities.streaming"},
		"a required extension": {
			`{` + face + `,"capabilities":{"extensions":[{"uri":"urn:a","required":false},{"uri":"urn:b","required":true}]}}`, `capabilities.extensions[1].required: the agent wants the extension "urn:b"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, nil)
			f.setCard(tt.card)
			refuses(t, client.Options{URL: f.URL}, core.CodeUnsupported, "cannot be used", tt.about)
		})
	}
}

func TestACardThatIsNotThereSaysWhatURLMeans(t *testing.T) {
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		code  core.Code
		about string
	}{
		"404":    {http.NotFound, core.CodeUnreachable, "url in the settings"},
		"401":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, core.CodeUnauthenticated, "token_file"},
		"a loop": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, core.CodeUnreachable, "redirects more than 3 times"},
		"to a file": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
		}, core.CodeUnreachable, "not followed"},
		"giant":          {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", 1<<20+1)) }, core.CodeTooLarge, "1048576 bytes"},
		"never answered": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, core.CodeUnreachable, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			defer s.CloseClientConnections()
			opts := client.Options{URL: s.URL}
			if name == "never answered" {
				opts.Timeout = 50 * time.Millisecond
			}
			refuses(t, opts, tt.code, tt.about)
		})
	}
	refuses(t, client.Options{URL: "example.com/agent"}, core.CodeInvalid, "url: want the http or https address")
	refuses(t, client.Options{URL: "http://127.0.0.1:1"}, core.CodeUnreachable, "connection refused")
}

func TestACardIsFoundBelowABaseAtItsAddressAndBehindARedirect(t *testing.T) {
	asked := make(chan string, 4)
	f := remote(t, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved.json" {
			f.handle(w, r)
			return
		}
		asked <- r.URL.String()
		http.Redirect(w, r, "/moved.json", http.StatusFound)
	}))
	defer s.Close()
	for path, want := range map[string]string{
		"/agents/far":         "/agents/far/.well-known/agent-card.json",
		"/agents/far/":        "/agents/far/.well-known/agent-card.json",
		"/a/my-card.json?v=1": "/a/my-card.json?v=1",
	} {
		run(t, client.Options{URL: s.URL + path})
		if got := <-asked; got != want {
			t.Errorf("%s: got the card from %s, want %s", path, got, want)
		}
	}
}

func TestACardThatLacksWhatTheHubDoesNotNeedIsUsed(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendMessage": func(x *exchange) { x.result(`{"task":` + snapshot("COMPLETED", "ok") + `}`) }})
	f.setCard(`{"name":"Fake","supportedInterfaces":[{"url":"h:1","protocolBinding":"GRPC","protocolVersion":"1.0"},{"url":"%s/rpc/","protocolBinding":"JSONRPC","protocolVersion":"1.1"}]}`)
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext ok\ndone")
}

func TestTheNextInterfaceIsUsedWhereTheFirstCannotBeReached(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendMessage": func(x *exchange) { x.result(`{"task":` + snapshot("COMPLETED", "ok") + `}`) }})
	f.setCard(`{"supportedInterfaces":[{"url":"http://127.0.0.1:1/","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext ok\ndone")
}

func TestTheTokenIsSentAsTheCardWants(t *testing.T) {
	scheme := func(inner string) string {
		return strings.Replace(streamingCard, `"skills":`, `"securitySchemes":{"s":`+inner+`},"securityRequirements":[{"schemes":{"s":{"list":[]}}}],"skills":`, 1)
	}
	for name, tt := range map[string]struct {
		card string
		got  func(*http.Request) string
		want string
	}{
		"nothing said": {streamingCard, func(r *http.Request) string { return r.Header.Get("Authorization") }, "Bearer secret"},
		"http":         {scheme(`{"httpAuthSecurityScheme":{"scheme":"Token"}}`), func(r *http.Request) string { return r.Header.Get("Authorization") }, "Token secret"},
		"header":       {scheme(`{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}}`), func(r *http.Request) string { return r.Header.Get("X-Key") }, "secret"},
		"query":        {scheme(`{"apiKeySecurityScheme":{"location":"query","name":"key"}}`), func(r *http.Request) string { return r.URL.Query().Get("key") }, "secret"},
		"oauth2":       {scheme(`{"oauth2SecurityScheme":{"flows":{}}}`), func(r *http.Request) string { return r.Header.Get("Authorization") }, "Bearer secret"},
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
				if got := tt.got(x.r); got != tt.want {
					x.Errorf("the request has %q, want %q", got, tt.want)
				}
				x.say(task("WORKING"), chunk("ok"), status("COMPLETED"))
			}})
			f.setCard(tt.card)
			run(t, client.Options{URL: f.URL, Token: func() string { return "secret" }}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext ok\ndone")
		})
	}
}

func TestARefusedTokenNamesTheSettingAndTheSchemes(t *testing.T) {
	f := remote(t, nil)
	f.setCard(strings.Replace(streamingCard, `"skills":`, `"securitySchemes":{"login":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"skills":`, 1))
	f.serve = func(w http.ResponseWriter, r *http.Request) {
		if w.WriteHeader(401); r.Header.Get("Authorization") == "Bearer wrong" {
			_, _ = io.WriteString(w, `{"error":{"code":401,"status":"UNAUTHENTICATED","message":"who are you?"}}`)
		}
	}
	run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), core.CodeUnauthenticated, "set token_file in its settings; its card names the security schemes login (HTTP Bearer)")
	run(t, client.Options{URL: f.URL, Token: func() string { return "wrong" }}).fails(newTurn(t, "x"), core.CodeUnauthenticated, "who are you?")
}

func TestRunEndsOnceTheRemoteIsGoneAndStartsAgain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.ReplaceAll(streamingCard, "%s", "http://"+r.Host))
	}))
	a := run(t, client.Options{URL: s.URL, Refresh: 5 * time.Millisecond})
	s.CloseClientConnections()
	s.Close()
	if err := <-a.over; !errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) {
		t.Errorf("Run: got %v, want unreachable", err)
	}
	a.fails(newTurn(t, "x"), core.CodeUnreachable, "not connected")
}

// A key is in the query of some addresses: people see neither that of the settings nor one of a card.
func TestTheQueryOfAnAddressIsNotShown(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		card := strings.ReplaceAll(streamingCard, `"url":"%s`, `"url":"%s?key=hunter2`)
		_, _ = io.WriteString(w, strings.ReplaceAll(card, "%s", "http://"+r.Host))
	}))
	var log bytes.Buffer
	a := run(t, client.Options{URL: s.URL + "/card.json?key=hunter2", Refresh: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.CloseClientConnections()
	s.Close()
	err := <-a.over
	for what, text := range map[string]string{"log": log.String(), "error": err.Error(), "card": string(a.profile.Metadata["a2a"])} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, s.URL) {
			t.Errorf("%s: got %s, want the address without its query", what, text)
		}
	}
}

func TestATaskForARemoteThatIsGoneFailsAsLost(t *testing.T) {
	f := remote(t, map[string]func(*exchange){})
	a := run(t, client.Options{URL: f.URL})
	f.Server.CloseClientConnections()
	f.Server.Close()
	err := a.work(newTurn(t, "x"))
	if !agent.IsLost(err) {
		t.Errorf("Work: got %v, want the agent lost", err)
	}
	if err := <-a.over; err == nil {
		t.Error("Run: got no error, want why the remote is gone")
	}
}

func TestATaskInWorkEndsWithARemoteThatIsGone(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one")); x.cut() }})
	a := run(t, client.Options{URL: f.URL})
	c := newTurn(t, "x")
	c.reported = func(b core.Body) {
		if b.Kind() == core.KindText {
			go func() {
				f.Server.CloseClientConnections()
				f.Server.Close()
			}()
		}
	}
	a.fails(c, core.CodeUnreachable, "")
	if err := <-a.over; err == nil {
		t.Error("Run: got no error, want why the remote is gone")
	}
}

func TestAnUnchangedCardIsNotReadAgain(t *testing.T) {
	asked := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Header.Get("If-None-Match"):
		default:
		}
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `W/"1"`)
		_, _ = io.WriteString(w, strings.ReplaceAll(streamingCard, "%s", "http://"+r.Host))
	}))
	defer s.Close()
	a := run(t, client.Options{URL: s.URL, Refresh: time.Millisecond})
	if first, second, third := <-asked, <-asked, <-asked; first != "" || second != `W/"1"` || third != `W/"1"` {
		t.Errorf("got the etags %q, %q, %q, want it in all but the first", first, second, third)
	}
	a.stop()
	if err := <-a.over; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: got %v, want the cause of its context", err)
	}
}
