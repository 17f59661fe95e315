package rpc

import "encoding/json"

// News is the name of what engines tell each other, with the type of the value in its stable JSON form.
type News[T any] string

// listener hears news of any type.
type listener struct {
	hear   func(from string, raw json.RawMessage) error
	missed func(from string) // nil where there is nothing to do
}

// Hear has an engine hear the news, without waiting. missed is called where it has not been told some, for too much
// was on its way to it; nil does nothing.
func (w News[T]) Hear(at Host, told func(from string, value T), missed func(from string)) {
	n := at.RPC()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.news[string(w)] = listener{func(from string, raw json.RawMessage) error {
		var value T
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		told(from, value)
		return nil
	}, missed}
}

// Tell tells another engine: see [Peers]. After an error that does not hear it; what cannot be said shorter is told by
// [News.TellEach].
func (w News[T]) Tell(from Host, to string, value T) error {
	return w.send(from.RPC(), to, value, false)
}

// TellEach tells others by name. One that cannot be told learns that it has missed something.
func (w News[T]) TellEach(from Host, names []string, value T) (told []string) {
	for _, name := range names {
		if w.send(from.RPC(), name, value, true) == nil {
			told = append(told, name)
		}
	}
	return told
}

// TellAll tells all that are connected, and returns which were told. Callers hold the lock under which the engine is
// told that others come: then one that comes later gets what it needs at that time, and none twice.
func (w News[T]) TellAll(from Host, value T) (told []string) {
	return w.TellEach(from, from.RPC().Up(), value)
}

func (w News[T]) send(n *Node, to string, value T, again bool) error {
	if n.peers == nil {
		return errAlone(to)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return n.peers.Tell(to, Told{What: string(w), Value: raw}, again)
}

// Told hears news of another engine. known is false for news that this version does not have.
func (n *Node) Told(from string, t Told) (known bool, err error) {
	n.mu.Lock()
	l, known := n.news[t.What]
	n.mu.Unlock()
	if !known {
		return false, nil
	}
	return true, l.hear(from, t.Value)
}

// Missed says that this engine was not told some news of another one.
func (n *Node) Missed(from, what string) {
	n.mu.Lock()
	missed := n.news[what].missed
	n.mu.Unlock()
	if missed != nil {
		missed(from)
	}
}
