package core

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reach says what an [Address] names. The zero Reach is unset.
type Reach uint8

// What an Address can name.
const (
	_               Reach = iota
	ReachAgent            // one agent, by id
	ReachPreference       // the first of several agents that can, by ids in order of preference
	ReachCapability       // an agent with all the capabilities
	ReachDomain           // an agent that declared the longest prefix of the domain
	ReachAny              // any agent that is free
	ReachHub              // the hub itself
)

const (
	capabilityPrefix = "capability:"
	domainPrefix     = "domain:"
	anyText          = "*"
	hubText          = "hub"
	// idSeparator separates the ids of an address by preference.
	idSeparator = ","

	// maxAddressBytes leaves room for several capabilities.
	maxAddressBytes = 8 * MaxIDBytes
)

// Address names the receiver of a request. Its text form is the same everywhere: an agent
// id, several in order of preference as "claude,codex", "capability:a,b",
// "domain:family.calendar", "*" or "hub". The zero Address is unset.
// Addresses compare with ==.
type Address struct {
	reach Reach
	value string
}

// ToAgent addresses one agent.
func ToAgent(id AgentID) Address { return Address{ReachAgent, string(id)} }

// ToPreference addresses the first of several agents that can, in order of preference.
func ToPreference(ids ...AgentID) Address {
	if len(ids) == 1 {
		return ToAgent(ids[0])
	}
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(idSeparator)
		}
		b.WriteString(string(id))
	}
	return Address{ReachPreference, b.String()}
}

// ToCapability addresses an agent with all of the capabilities.
func ToCapability(all ...string) Address {
	return Address{ReachCapability, strings.Join(all, ",")}
}

// ToDomain addresses an agent that declared the longest prefix of the dotted domain.
func ToDomain(domain string) Address { return Address{ReachDomain, domain} }

// ToAny addresses any agent that is free.
func ToAny() Address { return Address{ReachAny, anyText} }

// ToHub addresses the hub itself.
func ToHub() Address { return Address{ReachHub, hubText} }

// ParseAddress reads the text form. It returns an invalid Fault that says what to
// change; an empty text is the zero Address.
func ParseAddress(text string) (Address, error) {
	switch {
	case text == "":
		return Address{}, nil
	case len(text) > maxAddressBytes:
		return Address{}, NewFault(CodeInvalid, "the address has %d bytes: use at most %d", len(text), maxAddressBytes)
	case !utf8.ValidString(text):
		return Address{}, NewFault(CodeInvalid, "the address is not UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return Address{}, NewFault(CodeInvalid, "the address has control characters: remove them")
	case text == anyText:
		return ToAny(), nil
	case text == hubText:
		return ToHub(), nil
	case strings.HasPrefix(text, capabilityPrefix):
		all := strings.Split(text[len(capabilityPrefix):], ",")
		for i, c := range all {
			if all[i] = strings.TrimSpace(c); all[i] == "" {
				return Address{}, NewFault(CodeInvalid, "address %s: a capability is missing; write capability:a or capability:a,b", quote(text))
			}
		}
		return ToCapability(all...), nil
	case strings.HasPrefix(text, domainPrefix):
		domain := text[len(domainPrefix):]
		if domain == "" || slices.Contains(strings.Split(domain, "."), "") {
			return Address{}, NewFault(CodeInvalid, "address %s: a part of the domain is empty; write domain:family.calendar", quote(text))
		}
		return ToDomain(domain), nil
	case strings.Contains(text, idSeparator):
		return parsePreference(text)
	}
	if err := CheckAgentID(AgentID(text)); err != nil {
		return Address{}, err
	}
	return ToAgent(AgentID(text)), nil
}

// parsePreference reads ids in order of preference.
func parsePreference(text string) (Address, error) {
	var ids []AgentID
	for part := range strings.SplitSeq(text, idSeparator) {
		id := AgentID(strings.TrimSpace(part))
		if err := CheckAgentID(id); err != nil {
			return Address{}, NewFault(CodeInvalid, "address %s: %s; write agent ids with commas between them, the preferred one first", quote(text), AsFault(err).Message)
		}
		if slices.Contains(ids, id) {
			return Address{}, NewFault(CodeInvalid, "address %s names %s twice: each agent is asked once", quote(text), id)
		}
		ids = append(ids, id)
	}
	return ToPreference(ids...), nil
}

// Reach returns what the address names; zero if it is unset.
func (a Address) Reach() Reach { return a.reach }

// IsZero reports whether the address is unset.
func (a Address) IsZero() bool { return a.reach == 0 }

// Agent returns the agent id of an address of one agent, else "".
func (a Address) Agent() AgentID {
	if a.reach != ReachAgent {
		return ""
	}
	return AgentID(a.value)
}

// Agents yields the agent ids of an address by id, the preferred one first; none of any other address.
func (a Address) Agents() iter.Seq[AgentID] {
	return func(yield func(AgentID) bool) {
		switch a.reach {
		case ReachAgent:
			yield(AgentID(a.value))
		case ReachPreference:
			for id := range strings.SplitSeq(a.value, idSeparator) {
				if !yield(AgentID(id)) {
					return
				}
			}
		}
	}
}

// Preferred returns the first of the agent ids of an address by id, else "".
func (a Address) Preferred() AgentID {
	for id := range a.Agents() {
		return id
	}
	return ""
}

// ByID reports whether the address names agents by their ids.
func (a Address) ByID() bool { return a.reach == ReachAgent || a.reach == ReachPreference }

// Capabilities returns the capabilities of an address by capability, else nil.
func (a Address) Capabilities() []string {
	if a.reach != ReachCapability || a.value == "" {
		return nil
	}
	return strings.Split(a.value, ",")
}

// Domain returns the domain of an address by domain, else "".
func (a Address) Domain() string {
	if a.reach != ReachDomain {
		return ""
	}
	return a.value
}

// String returns the text form.
func (a Address) String() string {
	switch a.reach {
	case ReachCapability:
		return capabilityPrefix + a.value
	case ReachDomain:
		return domainPrefix + a.value
	}
	return a.value
}

// MarshalText implements encoding.TextMarshaler with the text form.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(b []byte) error {
	p, err := ParseAddress(string(b))
	if err != nil {
		return err
	}
	*a = p
	return nil
}
