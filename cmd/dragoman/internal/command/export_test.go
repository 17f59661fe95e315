package command

// NewLog makes the log of the commands.
var NewLog = newLog
