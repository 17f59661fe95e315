package core_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestARuleOfATypeIsToldWithoutTheCodeThatGoesBesideIt(t *testing.T) {
	var v struct {
		To core.Address `json:"to"`
	}
	const want = `to: address "domain:": a part of the domain is empty; write domain:family.calendar`
	if err := core.DecodeJSON([]byte(`{"to":"domain:"}`), core.JSONLimits{}, &v); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
