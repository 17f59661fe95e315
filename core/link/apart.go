package link

// Apart calls f in a goroutine of its own and returns its error. A goroutine keeps the stack that its deepest call has
// needed: what a connection needs once, such as a registration, is called apart from its reader loop, which lasts.
func Apart(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return <-done
}
