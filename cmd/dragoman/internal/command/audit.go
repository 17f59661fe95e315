package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

func auditCommand(io Streams) *cobra.Command {
	var of, principal, act string
	var limit int
	var verify bool
	c := &cobra.Command{
		Use: "audit", Short: "Show who did what on the hub", Args: cobra.NoArgs,
		Long: `Show who came in or was refused, and who asked, steered, approved and configured, the
newest last. For operators. Of several hubs that work as one each keeps its own audit: --of
names another one than that which is asked.

Each entry has the hash of the one before. --verify checks all of them, and prints the last
hash: note it elsewhere, since the hashes cannot show that the newest entries were removed.`,
		Example: `  dragoman audit --since 1h --act decide
  dragoman audit --verify`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	f.StringVar(&principal, "principal", "", "only entries of the principal with this `id`")
	f.StringVar(&of, "of", "", "the audit of the hub with this `name`, if several are one")
	f.StringVar(&act, "act", "", "only this `act`: connect, open, cancel, decide, ...")
	since := timeFlag(f, "since", 0, "only entries of the last `time`")
	f.IntVar(&limit, "limit", 100, "maximum `number` of entries, the newest; 0 for all")
	completeFlag(c, "of", fromHub(to, hubNames))
	completeFlag(c, "principal", fromHub(to, principalIDs))
	completeFlag(c, "act", fixed(auditActs()...))
	f.BoolVar(&verify, "verify", false, "check the hashes of all entries")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit < 0 {
			return usagef("--limit %d: want 0 (all) or more", limit)
		}
		if err := checkAct(act); err != nil {
			return err
		}
		if verify {
			if err := refuseFlags(c, "with --verify", "principal", "act", "since", "limit"); err != nil {
				return err
			}
			return verifyAudit(c.Context(), to, of)
		}
		w := auditWanted{principal: principal, act: act, limit: limit}
		if *since > 0 {
			w.since = time.Now().Add(-*since)
		}
		return listAudit(c.Context(), to, of, w)
	}
	return c
}

// auditWanted says which entries of an audit are listed.
type auditWanted struct {
	principal, act string
	since          time.Time
	limit          int // the newest; 0 is all
}

// has reports whether an entry is one of them.
func (w auditWanted) has(l audit.Line) bool {
	return (w.principal == "" || l.Principal == w.principal) && (w.act == "" || l.Act == w.act) && !l.At.Before(w.since)
}

// listAudit prints entries of the audit of a hub, the newest last.
func listAudit(ctx context.Context, to *hubFlags, of string, w auditWanted) error {
	var list struct {
		Hub   string            `json:"hub,omitempty"`
		Audit []json.RawMessage `json:"audit"`
	}
	list.Audit = []json.RawMessage{}
	rows := []audit.Line{}
	p, read := startProgress(to.Err, "reading the audit"), 0
	defer p.end()
	hub, err := to.client().Audit(ctx, of, func(raw []byte) error {
		if read++; read%1000 == 0 {
			p.say("reading the audit", fmt.Sprintf("%d entries", read))
		}
		var l audit.Line
		if json.Unmarshal(raw, &l) != nil || !w.has(l) { // one that was cut off by a kill: --verify says what of it
			return nil
		}
		if w.limit > 0 && len(rows) >= 2*w.limit { // drop the oldest now and then
			rows, list.Audit = slices.Delete(rows, 0, w.limit), slices.Delete(list.Audit, 0, w.limit)
		}
		rows, list.Audit = append(rows, l), append(list.Audit, slices.Clone(raw))
		return nil
	})
	p.end()
	if err != nil {
		return err
	}
	list.Hub = hub
	if more := len(rows) - w.limit; w.limit > 0 && more > 0 {
		rows, list.Audit = rows[more:], list.Audit[more:]
	}
	heads := []string{"SEQ", "AT", "PRINCIPAL", "ACT", "OBJECT", "OUTCOME", "DETAIL"}
	err = printList(to, list, rows, "no entries match: 'dragoman audit' lists the newest", heads, func(l audit.Line) []string {
		return []string{fmt.Sprint(l.Seq), l.At.Local().Format("2006-01-02 15:04:05"), orDash(l.Principal), l.Act, orDash(l.Object), l.Outcome, orDash(auditDetail(l))}
	})
	if hub != "" && of == "" && !to.json {
		fmt.Fprintf(to.Err, "this is the audit of hub %s alone: --of shows that of another one\n", visible(hub))
	}
	return err
}

// auditActs are the acts of the audit.
func auditActs() []string {
	known := []string{audit.ActConnect, audit.ActStart, audit.ActStop, audit.ActMissing}
	for _, act := range core.Acts() {
		if act.IsAudited() {
			known = append(known, act.String())
		}
	}
	return known
}

// checkAct refuses what is no act of the audit. "" is any.
func checkAct(name string) error {
	known := auditActs()
	if name == "" || slices.Contains(known, name) {
		return nil
	}
	if near := suggest.Nearest(name, known); near != "" {
		return usagef("--act %q: did you mean %s?", name, near)
	}
	return usagef("--act %q: use one of %s", name, strings.Join(known, ", "))
}

// auditDetail returns what only some entries have.
func auditDetail(l audit.Line) string {
	switch {
	case l.Act == audit.ActMissing && l.Count == 0:
		return "the hub was killed, or another one took it over: its last entries may be missing"
	case l.Act == audit.ActMissing:
		return fmt.Sprintf("entries that could not be written: %d", l.Count)
	case l.Count > 0:
		return fmt.Sprintf("%d more", l.Count)
	case l.Approved != nil && *l.Approved:
		return "approved " + l.Call
	case l.Approved != nil:
		return "denied " + l.Call
	case l.For != "":
		return fmt.Sprintf("task %s for %s", l.Task, l.For)
	case l.Task != "":
		return "task " + string(l.Task)
	}
	return ""
}

// verifyAudit checks the chain of all entries.
func verifyAudit(ctx context.Context, to *hubFlags, of string) error {
	var chain audit.Chain
	var broken error
	p := startProgress(to.Err, "checking the audit")
	defer p.end()
	hub, err := to.client().Audit(ctx, of, func(line []byte) error {
		if broken = chain.Next(line); chain.Lines%1000 == 0 {
			p.say("checking the audit", fmt.Sprintf("%d entries", chain.Lines))
		}
		return broken
	})
	p.end()
	switch {
	case err != nil && broken == nil: // the hub refused, or has gone: that says nothing of the audit
		return err
	case err == nil:
		err = chain.End()
	}
	if err != nil {
		return fmt.Errorf("the audit is not intact: %w", err)
	}
	v := struct {
		Hub     string `json:"hub,omitempty"`
		Entries int    `json:"entries"`
		First   uint64 `json:"first"`
		Last    uint64 `json:"last"`
		Hash    string `json:"hash"`
		Missing uint64 `json:"missing"`
		Kills   uint64 `json:"kills"`
	}{hub, chain.Lines, chain.First, chain.Last, chain.Hash(), chain.Missing, chain.Unknown}
	text := fmt.Sprintf("the audit is intact: entries: %d, from %d to %d, last hash %s", v.Entries, v.First, v.Last, v.Hash)
	switch {
	case v.Entries == 0:
		text = "the audit has no entries"
	case v.Missing > 0 || v.Kills > 0:
		text += fmt.Sprintf("; entries that could not be written: %d; times that the hub was killed or taken over and its last entries may be missing: %d", v.Missing, v.Kills)
	}
	if hub != "" {
		text = "hub " + visible(hub) + ": " + text
	}
	return to.print(v, text)
}
