package a2a

// Canonical is what a signature of a card is over.
var Canonical = canonical
