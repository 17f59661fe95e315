package quota

// Accounts returns how many accounts there are.
func Accounts(b *Book) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.accounts)
}
