// Package audit keeps the audit of a hub: who came in or was refused, and who asked, steered,
// approved and configured, each as one line of JSON that has the hash of the line before.
//
//	{"seq":8,"at":"2026-01-02T03:04:05.678Z","principal":"ana","act":"open","object":"shout",
//	 "task":"0198f3c2-...","outcome":"ok","prev":"9f86d0..."}
//
// prev is the SHA-256 of the line before without its line feed, in hexadecimal digits; 64
// zeros in the first line. Whoever changes, removes or adds a line in the middle has to write
// every later line anew, so a [Chain] finds it. What the hashes cannot show is that the last
// lines were removed, or that all were written anew: for that, the last hash is to be noted
// elsewhere. The oldest lines leave by the retention of the store; the chain then begins with
// the oldest line that is left.
//
// [Log] is the auditor of a hub. A call waits for no disk: its entry goes to a queue that is
// bounded in bytes, and one goroutine writes. When the store fails for long, the queue becomes
// full and entries are dropped, since a hub that stands still is no better; then a line with
// the act missing says how many, where they would have been, and the counter audit.missing
// counts them. A hub that was killed may lack the entries of its last moments: the line after
// its start says so.
//
// No line has content: neither what was asked nor what was answered, and no credential.
package audit
