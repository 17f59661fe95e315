package wire

import "github.com/dragoman-hub/dragoman/core/strictjson"

// TimeFormat is the form of timestamps (section 5.6.1): UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// list writes a list.
func list[T any](w *strictjson.Writer, key string, all []T, write func(*strictjson.Writer, *T)) {
	w.Key(key)
	w.B = append(w.B, '[')
	for i := range all {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		write(w, &all[i])
	}
	w.B = append(w.B, ']')
}
