package wire

import (
	"errors"
	"fmt"
)

func (r *ElicitationRequest) check() error {
	switch r.Mode {
	case "":
		return errors.New("mode: missing; send form or url")
	case ElicitForm:
		if len(r.RequestedSchema) == 0 {
			return errors.New("requestedSchema: missing; send a schema of an object")
		}
	case ElicitURL:
		return need("url", r.URL)
	default:
		return fmt.Errorf("mode: want form or url, got %.40q", r.Mode)
	}
	return nil
}

func (r *ElicitationResponse) check() error { return need("action", r.Action) }
