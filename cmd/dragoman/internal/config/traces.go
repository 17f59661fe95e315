package config

// Traces says which traces are exported, and where.
type Traces struct {
	Endpoint string
	Ratio    float64
	Content  bool
}

func (r *Traces) settings(t *table) {
	add(t, "endpoint", &r.Endpoint, "", "URL of a collector of OpenTelemetry, such as http://127.0.0.1:4318, to which spans are sent below /v1/traces. Empty for that of OTEL_EXPORTER_OTLP_ENDPOINT; without it, nothing is sent.").matching(`^(https?://\S+)?$`, "a URL such as http://127.0.0.1:4318")
	add(t, "ratio", &r.Ratio, 1, "Share of the tasks without a trace above them that are traced, from 0 to 1. The others are as what is above them.")
	add(t, "content", &r.Content, false, "Also export what is asked and answered, and the inputs and outputs of tools, redacted and up to 16 KiB of each.")
}
