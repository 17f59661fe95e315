package core_test

import (
	"math"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestMoneyIsExactToABillionth(t *testing.T) {
	var sum core.Money
	for range 10 { // as floats it is 0.9999999999999999
		m, ok := core.MoneyOf(0.1, "USD")
		if !ok {
			t.Fatal("0.1 USD: got it refused, want it taken")
		}
		sum = sum.Add(m)
	}
	if got := sum.String(); got != "1.00 USD" {
		t.Errorf("ten times 0.1: got %s, want 1.00 USD", got)
	}
	small, _ := core.MoneyOf(0.0012, "EUR")
	for want, m := range map[string]core.Money{"0.0012 EUR": small, "0.000000001 USD": {Nanos: 1, Currency: "USD"}, "unknown": {}, "12.00 USD": {Nanos: 12e9, Currency: "USD"}} {
		if got := m.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := sum.Add(small); got != sum {
		t.Errorf("with another currency: got %v, want it left out", got)
	}
	if got := (core.Money{Nanos: math.MaxInt64, Currency: "USD"}).Add(sum); got.Nanos != math.MaxInt64 {
		t.Errorf("above the most: got %v, want the most", got)
	}
	for _, amount := range []float64{-1, math.NaN(), math.Inf(1), core.MaxAmount + 1} {
		if m, ok := core.MoneyOf(amount, "USD"); ok {
			t.Errorf("%v: got %v, want it refused", amount, m)
		}
	}
	for _, code := range []string{"", "usd", "US", "USDT", "U$D"} {
		if _, ok := core.MoneyOf(1, code); ok {
			t.Errorf("currency %q: got it taken, want it refused", code)
		}
	}
}
