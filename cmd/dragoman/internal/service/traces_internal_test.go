package service

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestTheEnvironmentNamesACollectorUnlessItIsMeantForOthers(t *testing.T) {
	const url = "http://127.0.0.1:4318"
	type env map[string]string
	for name, tt := range map[string]struct {
		setting string
		env     env
		want    string
		why     string // begins so
	}{
		"nothing":                        {},
		"a setting":                      {setting: url, want: url},
		"the environment":                {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, want: url},
		"that of traces":                 {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url}, want: url},
		"a setting first":                {setting: url, env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other"}, want: url},
		"no URL":                         {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, why: `"localhost:4317" is no URL`},
		"no URL, and a setting":          {setting: url, env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, want: url},
		"gRPC":                           {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, why: "the environment wants OTLP over gRPC"},
		"gRPC, and a setting":            {setting: url, env: env{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: url},
		"gRPC, but not of traces":        {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, want: url},
		"disabled":                       {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SDK_DISABLED": "true"}},
		"disabled, but for a setting":    {setting: url, env: env{"OTEL_SDK_DISABLED": "true"}, want: url},
		"no exporter":                    {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "none"}},
		"an exporter among others":       {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "console,otlp"}, want: url},
		"no exporter, but for a setting": {setting: url, env: env{"OTEL_TRACES_EXPORTER": "none"}, want: url},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
				"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER",
			} {
				t.Setenv(variable, tt.env[variable])
			}
			at, why := collectorOf(config.Traces{Endpoint: tt.setting})
			got := ""
			if at != nil {
				got = at.String()
			}
			if got != tt.want || !strings.HasPrefix(why, tt.why) || (tt.why == "") != (why == "") {
				t.Errorf("got %q and %q, want %q and %q", got, why, tt.want, tt.why)
			}
		})
	}
}
