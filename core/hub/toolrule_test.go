package hub_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestADecodingErrorShowsAFaultWithoutItsCode(t *testing.T) {
	var v struct {
		To core.Address `json:"to"`
	}
	const want = `to: address "domain:": a part of the domain is empty; write domain:family.calendar`
	if err := strictjson.Decode([]byte(`{"to":"domain:"}`), strictjson.Limits{}, &v); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
