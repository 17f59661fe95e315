package pi_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
)

func TestTheTranslationIsComplete(t *testing.T) {
	if err := pi.Translation.Check(); err != nil {
		t.Error(err)
	}
}
