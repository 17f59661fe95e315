// Package procgroup starts a process as the leader of a group and ends the group as a whole: the
// process and the processes that it has started, as far as they have not left it. It also knows
// which variables a process needs that does not get all of this one.
//
// Windows has no such groups. There the process alone is ended, at once and without a warning, and
// the processes that it has started go on; none of the functions pretends otherwise.
package procgroup
