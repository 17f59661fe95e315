package supervisor

// endMarked ends nothing: Windows does not show the environment of another process.
func endMarked(string) {}
