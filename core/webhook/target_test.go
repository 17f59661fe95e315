package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
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

// What is no address of the public Internet in any form is refused when it is named, before anything is sent.
func TestAHostThatIsNotOfThePublicInternetIsRefusedWhenItIsNamed(t *testing.T) {
	for host, want := range map[string]bool{
		"example.com": true, "example.com.": true, "2130706433.example.com": true, "93.184.216.34": true, "[2606:2800:220:1::1]": true, "[::ffff:93.184.216.34]": true,
		"127.0.0.1": false, "10.1.2.3": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "198.18.0.1": false, "192.0.2.1": false, "255.255.255.255": false, "224.0.0.1": false,
		"[::1]": false, "[::]": false, "[fe80::1]": false, "[fe80::1%25lo]": false, "[fd00::1]": false, "[ff02::1]": false, "[::ffff:127.0.0.1]": false, "[::127.0.0.1]": false, "[fec0::1]": false,
		"[::ffff:0:127.0.0.1]": false, "[64:ff9b::127.0.0.1]": false, "[64:ff9b:1::127.0.0.1]": false, "[2002:7f00:1::]": false, "[2001:0:7f00:1::]": false, "[4000::1]": false, "[100::1]": false, "[5f00::1]": false,
		"localhost": false, "LOCALHOST.": false, "db.localhost": false, "127.1": false, "2130706433": false, "0x7f000001": false, "127.0.0.0x1": false, "127.0.0.1.": false, "0177.0.0.1": false,
	} {
		_, err := webhook.TargetsPublic.Check("https://"+host+"/hook", webhook.Place{Member: "url", Setting: "targets"})
		if got := err == nil; got != want || err != nil && !strings.Contains(err.Error(), "no address of the public Internet; the setting targets: any allows it") {
			t.Errorf("%s: got %v, want it allowed %t, else refused with what to do", host, err, want)
		}
		if _, err := webhook.TargetsAny.Check("https://"+host+"/hook", webhook.Place{}); err != nil {
			t.Errorf("%s where any target is allowed: got %v, want it allowed", host, err)
		}
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
	s := webhook.New(webhook.TargetsAny)
	attempted := make(chan webhook.Outcome, 1)
	s.Send(&webhook.Delivery{
		URL: target.URL, Target: "target", Header: func(int) http.Header { return http.Header{"Authorization": {"Bearer secret"}} },
		Attempted: func(a webhook.Outcome) { attempted <- a },
	})
	if a := <-attempted; a != webhook.Retrying {
		t.Errorf("got %+v, want it to be tried again, as the target did not accept it", a)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	s.Close(ctx)
}
