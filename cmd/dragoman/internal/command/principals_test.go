package command_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

const principals = `{"principals":[{"principal":"agent-29d97ee7","credential":"registered","status":"pending","fingerprint":"00ff","since":"2026-01-02T03:04:05Z"},
	{"principal":"alice","credential":"token","status":"approved","kind":"person","operator":true,"roles":["ops"],"agents":["a-*"],"expires":"2999-01-02T03:04:05Z"},
	{"principal":"bob","credential":"token","status":"approved","expires":"2020-01-02T03:04:05Z"}]}`

func TestPrincipalsAreListedWithTheirCredentials(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/principals": principals})
	code, out, stderr := run(t, "principals", "list", hub)
	want := []string{
		"PRINCIPAL STATUS CREDENTIAL KIND OPERATOR ROLES AGENTS SINCE EXPIRES FINGERPRINT",
		"agent-29d97ee7 pending registered - - - - 2026-01-02T03:04:05Z - 00ff",
		"alice approved token person yes ops a-* - 2999-01-02T03:04:05Z -",
		"bob expired token - - - - - 2020-01-02T03:04:05Z -",
	}
	if diff := cmp.Diff(want, fields(out)); code != command.ExitDone || diff != "" {
		t.Errorf("got %d and %s (-want +got):\n%s", code, stderr, diff)
	}
	_, out, _ = run(t, "principals", "list", "--json", hub)
	var list struct{ Principals []map[string]any }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Principals) != 3 {
		t.Errorf("got %s (%v), want an object with the list", out, err)
	}
}

func TestAPrincipalIsApprovedAndRevoked(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"POST /v1/principals/agent-29d97ee7/approve": `{"principal":"agent-29d97ee7","status":"approved"}`,
		"POST /v1/principals/agent-29d97ee7/revoke":  `{"principal":"agent-29d97ee7","status":"revoked"}`,
	})
	for act, want := range map[string]string{
		"approve": "agent-29d97ee7 may connect now\n", "revoke": "agent-29d97ee7 is refused from now on, and its sessions have ended\n",
	} {
		if code, out, stderr := run(t, "principals", act, "agent-29d97ee7", hub); code != command.ExitDone || out != want {
			t.Errorf("%s: got %d, %q and %s, want %q", act, code, out, stderr, want)
		}
	}
}
