package command

// NewLog makes the log of the commands.
var NewLog = newLog

// StartProgress begins to show progress.
var StartProgress = startProgress

// Say sets what is shown, and End takes it away.
func (p *progress) Say(what, with string) { p.say(what, with) }

// End takes the line away.
func (p *progress) End() { p.end() }
