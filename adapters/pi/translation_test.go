package pi

import "testing"

func TestTheTranslationIsComplete(t *testing.T) {
	if err := Translation.Check(); err != nil {
		t.Error(err)
	}
}
