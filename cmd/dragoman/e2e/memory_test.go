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
		if got, want := collectorMetric(t, "go_gc_gomemlimit_bytes"), tt.want; got != want {
			t.Errorf("the setting %q and GOMEMLIMIT %q: got %s, want %s", tt.setting, tt.env, got, want)
		}
	}
}

func TestASmallHubCollectsSeldomUnlessGOGCIsSet(t *testing.T) {
	for env, want := range map[string]string{"": "300", "80": "80", "100": "100"} {
		t.Setenv("GOGC", env)
		if got := collectorMetric(t, "go_gc_gogc_percent"); got != want {
			t.Errorf("GOGC %q: got %s, want %s", env, got, want)
		}
	}
}

// collectorMetric returns a whole number that a new hub states among its metrics.
func collectorMetric(t *testing.T, name string) string {
	t.Helper()
	resp, err := http.Get("http://" + startHub(t).http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("got no %s in the metrics, want it: %s", name, body)
	}
	value, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
