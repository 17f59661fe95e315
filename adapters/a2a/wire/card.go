package wire

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Card describes an agent: what the hub says or reads of its AgentCard (section 4.4.1).
type Card struct {
	Name            string                    `json:"name"`
	Description     string                    `json:"description"`
	Interfaces      []Interface               `json:"supportedInterfaces"`
	Provider        *Provider                 `json:"provider,omitempty"`
	Version         string                    `json:"version"`
	Capabilities    Capabilities              `json:"capabilities"`
	SecuritySchemes map[string]SecurityScheme `json:"securitySchemes,omitempty"`
	Security        []SecurityRequirement     `json:"securityRequirements,omitempty"`
	InputModes      []string                  `json:"defaultInputModes"`
	OutputModes     []string                  `json:"defaultOutputModes"`
	Skills          []Skill                   `json:"skills"`
	Signatures      []Signature               `json:"signatures,omitempty"`
}

// Interface is an address of an agent (section 4.4.6). A client prefers the first that it
// speaks, and sends the tenant with every request.
type Interface struct {
	URL             string `json:"url"`
	Binding         string `json:"protocolBinding"`
	Tenant          string `json:"tenant,omitempty"`
	ProtocolVersion string `json:"protocolVersion"`
}

// Provider is who offers the agent.
type Provider struct {
	Organization string `json:"organization"`
}

// Capabilities say what the agent can do beyond answering (section 4.4.3).
type Capabilities struct {
	Streaming         bool        `json:"streaming"`
	PushNotifications bool        `json:"pushNotifications"`
	Extensions        []Extension `json:"extensions,omitempty"`
	ExtendedCard      bool        `json:"extendedAgentCard"`
}

// Has reports whether the agent has an extension.
func (c Capabilities) Has(uri string) bool {
	return slices.ContainsFunc(c.Extensions, func(e Extension) bool { return e.URI == uri })
}

// Extension is an extension of the protocol that the agent has, or requires.
type Extension struct {
	URI         string          `json:"uri"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"`
}

// SecurityScheme is a way to authenticate (section 4.5): exactly one of its members. Of those
// that the hub does not speak it keeps the JSON.
type SecurityScheme struct {
	APIKey *struct {
		Location string `json:"location"`
		Name     string `json:"name"`
	} `json:"apiKeySecurityScheme,omitempty"`
	HTTP          *HTTPScheme     `json:"httpAuthSecurityScheme,omitempty"`
	OAuth2        json.RawMessage `json:"oauth2SecurityScheme,omitempty"`
	OpenIDConnect json.RawMessage `json:"openIdConnectSecurityScheme,omitempty"`
	MutualTLS     json.RawMessage `json:"mtlsSecurityScheme,omitempty"`
}

// HTTPScheme is authentication by a header, such as Bearer.
type HTTPScheme struct {
	Scheme string `json:"scheme"`
}

// SecurityRequirement names the schemes of which all are needed, with their scopes.
type SecurityRequirement struct {
	Schemes map[string]Scopes `json:"schemes"`
}

// Scopes are the scopes of a scheme.
type Scopes struct {
	List []string `json:"list,omitempty"`
}

// Skill is something that the agent can do (section 4.4.5).
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// Signature is a signature of the card (section 8.4): a JWS without its payload.
type Signature struct {
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

// ReadCard reads a card. Its error names the first field that is wrong or missing.
func ReadCard(text []byte) (Card, error) {
	var c Card
	v, err := Parse(text)
	if err != nil {
		return c, err
	}
	if err := wantObject(v); err != nil {
		return c, err
	}
	if err := v.Decode(&c); err != nil {
		return c, err
	}
	return c, c.check(v)
}

// check checks the required fields.
func (c Card) check(v strictjson.Value) error {
	for _, required := range []string{"name", "description", "version", "supportedInterfaces", "capabilities", "defaultInputModes", "defaultOutputModes", "skills"} {
		if v.Get(required).Absent() {
			return missing(required, "a card of A2A "+Version+" has it")
		}
	}
	if len(c.Interfaces) == 0 {
		return under("supportedInterfaces", wrong("empty: a card has at least one interface"))
	}
	for i, at := range c.Interfaces {
		var err error
		switch {
		case at.URL == "":
			err = missing("url", "say where the interface is")
		case at.Binding == "":
			err = missing("protocolBinding", "name the binding, such as "+BindingJSONRPC)
		case at.ProtocolVersion == "":
			err = missing("protocolVersion", "name the version, such as "+Version)
		}
		if err != nil {
			return under("supportedInterfaces["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}
