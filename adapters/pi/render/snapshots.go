package render

import "github.com/dragoman-hub/dragoman/core"

// Snapshots says whether updates repeat the whole message so far. The zero Snapshots is
// SnapshotsAll.
type Snapshots uint8

// The ways of telling a message that grows.
const (
	_ Snapshots = iota
	// SnapshotsAll repeats the message in every update, and sends as many updates as
	// are worth their bytes.
	SnapshotsAll
	// SnapshotsNone sends every delta at once and no message with it.
	SnapshotsNone
)

// ParseSnapshots reads what a client asks for with ?snapshots= in its address: all,
// none, or nothing. It returns an invalid Fault for anything else.
func ParseSnapshots(text string) (Snapshots, error) {
	switch text {
	case "", "all":
		return SnapshotsAll, nil
	case "none":
		return SnapshotsNone, nil
	}
	return 0, core.NewFault(core.CodeInvalid, "snapshots=%q is not known: ask for all or none", text)
}
