package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAddressOfAConnectionIsChecked(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	try := func(targets webhook.Targets) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := targets.Transport().RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	var forbidden *webhook.ForbiddenAddress
	if err := try(webhook.TargetsPublic); !errors.As(err, &forbidden) {
		t.Errorf("loopback: got %v, want it refused", err)
	}
	if err := try(webhook.TargetsAny); err != nil {
		t.Errorf("loopback where any target is allowed: got %v, want an answer", err)
	}
}

// A target can send a delivery nowhere else: neither by a redirect nor by a proxy of the
// environment.
func TestADeliveryGoesToItsTargetAlone(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got %s %s elsewhere, want nothing", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	for _, targets := range []webhook.Targets{webhook.TargetsPublic, webhook.TargetsAny} {
		if transport, ok := targets.Transport().(*http.Transport); !ok || transport.Proxy != nil {
			t.Errorf("%s: got %+v, want a transport without a proxy", targets, transport)
		}
	}
	target := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer target.Close()
	s := webhook.New(webhook.Options{Targets: webhook.TargetsAny})
	attempted := make(chan webhook.Attempt, 1)
	s.Send(&webhook.Delivery{
		URL: target.URL, Target: "target", Header: func(int) http.Header { return http.Header{"Authorization": {"Bearer secret"}} },
		Attempted: func(a webhook.Attempt) {
			if a.Number == 1 {
				attempted <- a
			}
		},
	})
	if a := <-attempted; a.Status != http.StatusTemporaryRedirect || a.Outcome != webhook.Retrying {
		t.Errorf("got %+v, want the status of the target alone", a)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	s.Close(ctx)
}
