package config

// Frames are the frames of connections that people may look at: see frame.Book.
type Frames struct {
	Keep int
}

func (f *Frames) settings(t *table) {
	add(t, "keep", &f.Keep, 0, "How many bytes of the latest frames are kept of each connection, in memory, for those who may read their tasks. All together take at most an eighth of the memory for content. 0 keeps none.").bytes().atLeast(0)
}
