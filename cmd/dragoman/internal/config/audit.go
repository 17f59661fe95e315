package config

import "time"

// Audit are the limits of the audit that is kept.
type Audit struct {
	Age   time.Duration
	Bytes int64
}

func (a *Audit) settings(t *table) {
	add(t, "age", &a.Age, 8760*time.Hour, "How long an entry of the audit is kept.")
	add(t, "bytes", &a.Bytes, 64<<20, "Maximum size of the audit that is kept. All of it is read at start.").bytes().atLeast(1 << 20)
}

// Redact says what is taken out of what is stored.
type Redact struct {
	Patterns []string
}

func (r *Redact) settings(t *table) {
	add(t, "patterns", &r.Patterns, []string{}, "Regular expressions (RE2). What they match is stored, logged and traced as [redacted], as are the secrets that the hub knows.").noCommas()
}
