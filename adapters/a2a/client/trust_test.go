package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
)

// oneCard is a RoundTripper that answers every request with a card.
type oneCard string

func (a oneCard) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func TestACardThatRedirectsToAnotherHostIsNotFetched(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s with the Authorization %q, want no request", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/card.json?key=k", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	refuses(t, client.Options{URL: s.URL, Token: func() string { return "secret" }}, core.CodeUnreachable, other.URL+"/card.json\", which is not followed", "url in the settings")
}

func TestTheTokenIsSentToNoOtherHost(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got the Authorization %q, want no request", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	elsewhere := `{"url":"` + other.URL + `/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}`
	f := remote(t, map[string]func(*exchange){"SendMessage": func(x *exchange) {
		if got := x.r.Header.Get("Authorization"); got != "Bearer secret" {
			x.Errorf("the host of the card got the Authorization %q, want the token", got)
		}
		x.result(`{"task":` + snapshot("COMPLETED", "ok") + `}`)
	}})
	opts := client.Options{URL: f.URL, Token: func() string { return "secret" }}
	f.setCard(`{"supportedInterfaces":[` + elsewhere + `]}`)
	refuses(t, opts, core.CodeUnsupported, "supportedInterfaces[0].url: "+other.URL+"/rpc is not at the host of the card", "only that gets the token")
	f.setCard(`{"supportedInterfaces":[` + elsewhere + `,{"url":"%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	run(t, opts).does(newTurn(t, "x"), "accepted\nsession_started C\ntext ok\ndone")
}

func TestATokenThatComesLaterIsNotSentToAnotherHost(t *testing.T) {
	other := remote(t, map[string]func(*exchange){"SendMessage": func(x *exchange) {
		if got := x.r.Header.Get("Authorization"); got != "" {
			x.Errorf("the other host got the Authorization %q, want none", got)
		}
		x.result(`{"task":` + snapshot("COMPLETED", "ok") + `}`)
	}})
	f := remote(t, nil)
	f.setCard(`{"supportedInterfaces":[{"url":"` + other.URL + `/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	token := ""
	a := run(t, client.Options{URL: f.URL, Token: func() string { return token }})
	token = "secret"
	a.does(newTurn(t, "x"), "accepted\nsession_started C\ntext ok\ndone")
}

func TestACardFromOutsideNamesNoHostInside(t *testing.T) {
	for _, tt := range []struct {
		url, end string
		fits     bool
	}{
		{"https://far.example", "http://127.0.0.1:8080/", false},
		{"https://far.example", "http://localhost/", false},
		{"https://far.example", "http://sub.localhost./", false},
		{"https://far.example", "http://[::1]/", false},
		{"https://far.example", "http://[::ffff:10.0.0.1]/", false},
		{"https://far.example", "http://192.168.1.1/", false},
		{"https://far.example", "http://169.254.169.254/latest", false},
		{"https://far.example", "http://0.0.0.0/", false},
		{"https://far.example", "https://rpc.example/", true},
		{"http://10.0.0.1", "http://10.0.0.2/", true},
		{"http://localhost:80", "http://127.0.0.1:8080/", true},
	} {
		c := client.New(client.Options{URL: tt.url, HTTP: &http.Client{Transport: oneCard(`{"supportedInterfaces":[{"url":"` + tt.end + `","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)}})
		err := readyOnce(c)
		if (err == nil) != tt.fits || err != nil && !strings.Contains(err.Error(), "supportedInterfaces[0].url: "+strings.TrimRight(tt.end, "/")) {
			t.Errorf("a card from %s with the interface %s: got the error %v, want one: %t", tt.url, tt.end, err, !tt.fits)
		}
	}
}
