package config

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag and the setting behind it name the same protocols.
func TestAnAddressIsToldToServeTheSameAsAFlagAndAsASetting(t *testing.T) {
	raw, err := os.ReadFile("../../../../schemas/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	AddFlags(fs)
	for flag, setting := range map[string]string{"grpc-addr": "grpc_addr", "http-addr": "http_addr"} {
		want, _, _ := strings.Cut(schema.Properties[setting].Description, ":")
		_, usage := pflag.UnquoteUsage(fs.Lookup(flag))
		if got, _, _ := strings.Cut(usage, ";"); got != want {
			t.Errorf("--%s: got %q, want %q", flag, got, want)
		}
	}
}
