package hub

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// Audit calls yield for the lines of the audit whose numbers are above after, oldest first,
// until it returns false. Each hub keeps its own: that of another one is read with its name, and ""
// is this hub. It returns a not_authorized Fault unless the principal is an operator, an unsupported
// one where no audit is kept, an invalid one for a hub that is not known, and an unreachable one for
// a hub that is not here.
func (h *Hub) Audit(ctx context.Context, p core.Principal, of string, after uint64, yield func(line []byte) bool) error {
	if err := h.list(p, core.ListAudit, func() error { return nil }); err != nil {
		return err
	}
	if of == "" || of == h.Name() {
		return h.audit(ctx, after, yield)
	}
	if err := h.isOther(of); err != nil {
		return err
	}
	for {
		page, err := auditMethod.Ask(ctx, h, of, p, after)
		if err != nil {
			return err
		}
		for _, line := range page.Lines {
			if !yield(line) {
				return nil
			}
		}
		if after = page.After; after == 0 {
			return nil
		}
	}
}

// auditPage is a part of the audit of a hub.
type auditPage struct {
	Lines [][]byte `json:"lines"` // byte for byte, since they have hashes
	// After is the number of the last line if there are more, else 0.
	After uint64 `json:"after,omitempty"`
}

// auditPageBytes is how much of an audit one hub sends another at once.
const auditPageBytes = 1 << 20

// auditMethod asks a hub for the lines of its audit above a number.
const auditMethod rpc.Method[uint64, auditPage] = "audit"

// auditHere is auditMethod at this hub.
func (h *Hub) auditHere(ctx context.Context, _ core.Principal, after uint64) (page auditPage, err error) {
	size, last := 0, after
	err = h.audit(ctx, after, func(line []byte) bool {
		if size >= auditPageBytes {
			page.After = last
			return false
		}
		var head struct{ Seq uint64 }
		if last++; json.Unmarshal(line, &head) == nil && head.Seq > 0 { // else it was cut off by a kill
			last = head.Seq
		}
		size += len(line)
		page.Lines = append(page.Lines, append([]byte{}, line...))
		return true
	})
	return page, err
}

// audit reads the audit of this hub.
func (h *Hub) audit(ctx context.Context, after uint64, yield func(line []byte) bool) error {
	r, ok := h.auditor.(policy.AuditReader)
	if !ok {
		return core.NewFault(core.CodeUnsupported, "this hub keeps no audit")
	}
	return r.Read(ctx, after, yield)
}

// Name returns the name of this hub in its cluster; "" if it is alone.
func (h *Hub) Name() string {
	return h.node.Name()
}

// isOther returns an invalid Fault unless a name is that of another hub of the cluster, and an
// unreachable one if that is not here.
func (h *Hub) isOther(name string) error {
	s := h.node.State(name)
	switch {
	case s.Up:
		return nil
	case h.remote != nil && s.Index >= 0:
		return core.NewFault(core.CodeUnreachable, "hub %s is not here: ask again once it is back", name)
	case h.remote == nil:
		return core.NewFault(core.CodeInvalid, "this hub is alone: leave out the hub %q", name)
	}
	return core.NewFault(core.CodeInvalid, "no hub of this cluster is called %q: 'dragoman hubs' lists them", name)
}
