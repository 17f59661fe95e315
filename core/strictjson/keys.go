package strictjson

import "bytes"

// keySet are the keys of one object so far. Up to the size of few they are
// searched one by one; beyond that a map is cheaper, and a hostile object
// harmless.
type keySet struct {
	few  [16][]byte
	n    int
	many map[string]struct{}
}

// add notes a key and returns false if it was there already.
func (k *keySet) add(key []byte) bool {
	if k.many != nil {
		before := len(k.many)
		k.many[string(key)] = struct{}{}
		return len(k.many) > before
	}
	for _, other := range k.few[:k.n] {
		if bytes.Equal(other, key) {
			return false
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = key
		k.n++
		return true
	}
	k.many = make(map[string]struct{}, 4*len(k.few))
	for _, other := range k.few {
		k.many[string(other)] = struct{}{}
	}
	k.many[string(key)] = struct{}{}
	return true
}
