package core

import (
	"fmt"
	"math"
	"strings"
)

// Money is an amount in a currency, exact to a billionth of it. Without a currency it is unknown.
type Money struct {
	Nanos int64 `json:"nanos"` // billionths
	// Currency is a code of ISO 4217, such as USD.
	Currency string `json:"currency"`
}

const (
	// NanosPerOne is how many billionths make one of a currency.
	NanosPerOne = 1_000_000_000
	// MaxAmount is the most of a currency that one event may cost, and that a price or a limit may be.
	MaxAmount = 1_000_000
	// MaxNanos is MaxAmount in billionths.
	MaxNanos = MaxAmount * NanosPerOne
)

// MoneyOf returns an amount, rounded to a billionth. It reports false for one that is negative, no number, or above
// [MaxNanos], and for a currency that is not written as three capital letters.
func MoneyOf(amount float64, currency string) (Money, bool) {
	if !(amount >= 0 && amount <= MaxAmount) || !IsCurrency(currency) {
		return Money{}, false
	}
	return Money{int64(math.Round(amount * NanosPerOne)), currency}, true
}

// IsCurrency reports whether a text is written as a code of ISO 4217.
func IsCurrency(code string) bool {
	return len(code) == 3 && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Known reports whether it is an amount.
func (m Money) Known() bool { return m.Currency != "" }

// Add returns the sum, which does not overflow. Unknown amounts, and those in another currency than m, add nothing.
func (m Money) Add(o Money) Money {
	switch {
	case !o.Known(), m.Known() && m.Currency != o.Currency:
		return m
	case m.Nanos > math.MaxInt64-o.Nanos:
		o.Nanos = math.MaxInt64 - m.Nanos
	}
	return Money{m.Nanos + o.Nanos, o.Currency}
}

// String returns the amount with at least two decimals, such as 0.0012 USD, or "unknown".
func (m Money) String() string {
	if !m.Known() {
		return "unknown"
	}
	decimals := strings.TrimRight(fmt.Sprintf("%09d", m.Nanos%NanosPerOne), "0")
	return fmt.Sprintf("%d.%s %s", m.Nanos/NanosPerOne, decimals+strings.Repeat("0", max(0, 2-len(decimals))), m.Currency)
}
