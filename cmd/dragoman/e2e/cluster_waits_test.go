package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// A hub that waits for the others of its cluster says so to everybody, at once, and then serves on the
// same listeners.
func TestAHubThatWaitsForOthersAnswersAtOnce(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	a.start()
	a.untilLogged("waiting for the first start of a cluster: 1 of 3 hubs is here, 3 are needed; it has heard nobody at " + b.route + ", " + c.route)
	answersWhileItWaits(t, a, "1 of 3 hubs is here, 3 are needed; it has heard nobody at "+b.route+", "+c.route)

	b.start()
	a.untilLogged("waiting for the first start of a cluster: 2 of 3 hubs are here, 3 are needed")
	answersWhileItWaits(t, a, "2 of 3 hubs are here, 3 are needed")

	alive, stopped := context.WithCancel(t.Context())
	defer stopped()
	refused := make(chan error)
	go func() { refused <- stayAlive(alive, a.URL) }()
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	defer func() {
		leave()
		<-left
	}()
	go func() {
		defer close(left)
		runWith(ctx, "", "agent", "--name", "shout", "--wait=2m", "--hub", a.URL, "--", "tr", "a-z", "A-Z")
	}()
	asked := make(chan string)
	go func() {
		_, out, stderr := runWith(t.Context(), "", "ask", "shout", "hello", "--wait=2m", "--hub", a.URL)
		asked <- out + stderr
	}()
	c.start()
	all.untilAllUp()
	if got := <-asked; !strings.HasPrefix(got, "HELLO\n") || !strings.Contains(got, "2 of 3 hubs are here") {
		t.Errorf("a question that waits: got %q, want HELLO, and what it waits for", got)
	}
	stopped()
	if err := <-refused; err != nil {
		t.Errorf("the health while the hub takes over the listeners: got %v, want it alive all the time", err)
	}

	for _, h := range all {
		h.kill()
	}
	a.start()
	a.untilLogged("waiting for a majority: 1 of 3 hubs is here, 2 are needed; it has not heard b, c")
	answersWhileItWaits(t, a, "1 of 3 hubs is here, 2 are needed; it has not heard b, c")
}

// untilLogged waits until the hub has logged a text.
func (h *clusterHub) untilLogged(text string) {
	h.t.Helper()
	h.until(fmt.Sprintf("hub %s logs %q", h.name, text), func() error { return notYet(strings.Contains(h.log(), text), "it does not") })
}

// answersWhileItWaits asks a hub in every way, which has to say why it answers nothing.
func answersWhileItWaits(t *testing.T, h *clusterHub, why string) {
	t.Helper()
	if got := answerOf(t, h.URL+"/healthz"); got.status != http.StatusOK || got.text != "ok\n" {
		t.Errorf("/healthz: got %d and %q, want it alive", got.status, got.text)
	}
	if got := answerOf(t, h.URL+"/readyz"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.text, why) {
		t.Errorf("/readyz: got %d and %q, want 503 and %q", got.status, got.text, why)
	}
	for _, at := range []string{h.URL + "/v1/hub", h.URL + "/", "http://" + h.pi + "/"} {
		got := answerOf(t, at)
		var problem struct{ Code, Detail string }
		if err := json.Unmarshal([]byte(got.text), &problem); err != nil || got.status != http.StatusServiceUnavailable || problem.Code != "overloaded" || !strings.Contains(problem.Detail, why) {
			t.Errorf("%s: got %d and %q, want 503, overloaded and %q", at, got.status, got.text, why)
		}
	}
	_, resp, err := websocket.Dial(t.Context(), h.URL+"/ws/native", nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a WebSocket: got %v and %v, want 503", resp, err)
	}
	_, err = grpcserver.Dial(t.Context(), h.grpc, grpcserver.DialOptions{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), why) {
		t.Errorf("gRPC: got %v, want UNAVAILABLE and %q", err, why)
	}
	if code, _, stderr := run(t, "hubs", "--hub", h.URL); code != command.ExitFailed || !strings.Contains(stderr, why) {
		t.Errorf("dragoman hubs: got %d and %q, want %q", code, stderr, why)
	}
}

// httpAnswer is the answer to a request, and its body.
type httpAnswer struct {
	status int
	text   string
}

// answerOf returns what a hub answers to a GET on a connection of its own.
func answerOf(t *testing.T, at string) httpAnswer {
	t.Helper()
	got, err := getAlone(t.Context(), at)
	if err != nil {
		t.Errorf("%s: got %v, want an answer", at, err)
	}
	return got
}

// getAlone sends a GET on a connection of its own.
func getAlone(ctx context.Context, at string) (httpAnswer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return httpAnswer{}, err
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return httpAnswer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return httpAnswer{resp.StatusCode, string(text)}, err
}

// stayAlive asks for the health of a hub again and again until ctx ends. It returns the first answer that
// says it is not alive.
func stayAlive(ctx context.Context, url string) error {
	for ctx.Err() == nil {
		got, err := getAlone(ctx, url+"/healthz")
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case got.status != http.StatusOK:
			return fmt.Errorf("%d: %s", got.status, got.text)
		}
	}
	return nil
}
