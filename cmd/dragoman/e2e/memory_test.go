package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestTheMemoryLimitIsASettingUnlessGOMEMLIMITIsSet(t *testing.T) {
	usual := strconv.FormatInt(config.Default().Limits.Memory, 10)
	for _, tt := range []struct{ setting, env, want string }{
		{"", "", usual},
		{"268435456", "", "268435456"},
		{"268435456", "200MiB", strconv.Itoa(200 << 20)},
		{"0", "", usual},
	} {
		t.Setenv("DRAGOMAN_LIMITS_MEMORY", tt.setting)
		if tt.setting == "" {
			t.Setenv("DRAGOMAN_LIMITS_MEMORY", "0")
		}
		t.Setenv("GOMEMLIMIT", tt.env)
		hub := startHub(t)
		resp, err := http.Get("http://" + hub.http + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^go_gc_gomemlimit_bytes (\S+)$`).FindSubmatch(body)
		if m == nil {
			t.Fatalf("got no limit in the metrics, want one: %s", body)
		}
		got, err := strconv.ParseFloat(string(m[1]), 64)
		if want, _ := strconv.ParseFloat(tt.want, 64); err != nil || got != want {
			t.Errorf("the setting %q and GOMEMLIMIT %q: got %s, want %s", tt.setting, tt.env, m[1], tt.want)
		}
	}
}
