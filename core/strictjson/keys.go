package strictjson

import "bytes"

// keySet is the keys of one object so far. A few are compared one by one in the index; for
// more a map is cheaper, and a hostile object does no harm.
type keySet struct {
	first int // the node of the first member
	n     int
	many  map[string]struct{}
}

const fewKeys = 16

// add adds a key and returns false if it was there already.
func (k *keySet) add(x *index, key []byte) bool {
	if k.many == nil {
		if k.n == fewKeys {
			k.many = make(map[string]struct{}, 4*fewKeys)
		}
		for at := k.first; at < len(x.nodes); at = int(x.nodes[at].next) {
			if k.many != nil {
				k.many[string(x.key(at))] = struct{}{}
			} else if bytes.Equal(x.key(at), key) {
				return false
			}
		}
		if k.n++; k.many == nil {
			return true
		}
	}
	before := len(k.many)
	k.many[string(key)] = struct{}{}
	return len(k.many) > before
}

// key returns the key of the member at a node, unescaped.
func (x *index) key(at int) []byte {
	n := &x.nodes[at]
	key := x.text[n.keyFrom:n.keyTo:n.keyTo]
	if n.marks&keyEscaped != 0 {
		return unescape(nil, key)
	}
	return key
}
