package config

import "time"

// A2A are the settings of the A2A endpoint.
type A2A struct {
	// URL is the address of the hub that cards name instead of that of the request.
	URL       string
	Deadline  time.Duration
	BodyBytes int
	// SigningKey is the path of the PEM file with the key that cards are signed with.
	SigningKey string
	// PushTargets restricts where updates of tasks may be posted.
	PushTargets string
}

func (a *A2A) settings(t *table) {
	add(t, "url", &a.URL, "", "URL of the hub as A2A clients reach it, such as https://hub.example.com, for agent cards, and for links in notifications. Empty takes it from each request, and links lead to http_addr.").matching(`^(https?://[^/]+/?)?$`, "an http or https address without a path")
	add(t, "deadline", &a.Deadline, 4*time.Hour, "Default deadline of a task. How long people are waited for does not count.").atMost(maxWait)
	add(t, "body_bytes", &a.BodyBytes, 1_000_000, "Maximum size of a request body.").bytes().atLeast(1024)
	add(t, "push_targets", &a.PushTargets, "public", "Where push notifications of tasks may be posted: nowhere (none), to public Internet addresses by https (public), or to any address by http or https, including this machine and its network (any).").oneOf("none", "public", "any")
	add(t, "signing_key", &a.SigningKey, "", "PEM file with an EC P-256 private key that agent cards are signed with (ES256). Empty signs none.").path()
}
