package coretest

import (
	"iter"

	"github.com/dragoman-hub/dragoman/core/audit"
)

// VerifyAudit checks that lines are a whole chain of an audit. Its error is an [audit.Broken].
func VerifyAudit(lines iter.Seq[[]byte]) error {
	var c audit.Chain
	for line := range lines {
		if err := c.Next(line); err != nil {
			return err
		}
	}
	return c.End()
}
