package webhook_test

import (
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
