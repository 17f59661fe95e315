package rest

import (
	"cmp"
	"math"
	"net/http"
	"strconv"

	"github.com/dragoman-hub/dragoman/core"
)

// hubHeader names the hub that an audit is of, in a cluster.
const hubHeader = "Dragoman-Hub"

// getAudit sends the lines of the audit as they are stored, so that clients can check their
// hashes. A response that cannot be completed is cut off.
func (a *api) getAudit(c call) error {
	limit, err := number(c.r, "limit", math.MaxInt, math.MaxInt)
	if err != nil {
		return err
	}
	var after uint64
	if text := c.r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			return core.NewFault(core.CodeInvalid, "?after=%s: send the seq of a line", text)
		}
	}
	of := cmp.Or(c.r.URL.Query().Get("hub"), a.hub.Name())
	out, n := a.outlet(c.w), 0
	var buf []byte
	var gone error
	begin := func() {
		if n == 0 {
			c.w.Header().Set("Content-Type", lineType)
			c.w.Header().Set("Cache-Control", "no-store")
			if of != "" {
				c.w.Header().Set(hubHeader, of)
			}
		}
	}
	err = a.hub.Audit(c.r.Context(), c.from, of, after, func(line []byte) bool {
		begin()
		n++
		if buf = append(append(buf, line...), '\n'); len(buf) >= streamBytes {
			_, gone = out.Write(buf)
			buf = buf[:0]
		}
		return gone == nil && n < limit
	})
	switch {
	case gone != nil, err != nil && n > 0:
		panic(http.ErrAbortHandler) // so that the client does not take what it has for all
	case err != nil:
		return err
	}
	begin()
	_, _ = out.Write(buf) // the client may have gone
	return nil
}
