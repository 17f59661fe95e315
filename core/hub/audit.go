package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// Audit calls yield for the lines of the audit whose numbers are above after, oldest first,
// until it returns false. It returns a not_authorized Fault unless the principal is an
// operator, and an unsupported one where no audit is kept.
func (h *Hub) Audit(ctx context.Context, p core.Principal, after uint64, yield func(line []byte) bool) error {
	if err := h.list(p, core.ListAudit, func() error { return nil }); err != nil {
		return err
	}
	r, ok := h.auditor.(policy.AuditReader)
	if !ok {
		return core.NewFault(core.CodeUnsupported, "this hub keeps no audit")
	}
	return r.Read(ctx, after, yield)
}
