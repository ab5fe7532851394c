package mcpbridge

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/signals"
)

// clientCapabilities are what a client declares that it can do, with each request or when it opens its session.
type clientCapabilities struct {
	Extensions  map[string]jsontext.Value `json:"extensions"`
	Elicitation *struct {
		Form *struct{} `json:"form"`
		URL  *struct{} `json:"url"`
	} `json:"elicitation"`
	Sampling *struct {
		Tools *struct{} `json:"tools"`
	} `json:"sampling"`
	Roots *struct{} `json:"roots"`
	// Tasks is what a client of 2025-11-25 declares that knows tasks.
	Tasks *struct{} `json:"tasks"`
}

// showsForms reports whether the client shows forms: elicitation without modes means form mode.
func (c *clientCapabilities) showsForms() bool {
	return c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// extends reports whether the client declares an extension.
func (c *clientCapabilities) extends(extension string) bool {
	_, ok := c.Extensions[extension]
	return ok
}

// lacks names the capability that a client would need to answer an input request and has not declared; "" if it can
// answer. Nothing else may be asked of it (MCP, "Capabilities" of elicitation, sampling and roots).
func (c *clientCapabilities) lacks(request signals.InputRequest) string {
	var params struct {
		Mode  string         `json:"mode"`
		Tools jsontext.Value `json:"tools"`
	}
	if len(request.Params) > 0 && json.Unmarshal(request.Params, &params) != nil {
		return "a readable " + request.Method
	}
	switch request.Method {
	case signals.MethodElicit:
		if params.Mode == "url" && (c.Elicitation == nil || c.Elicitation.URL == nil) {
			return "elicitation.url"
		}
		if params.Mode != "url" && !c.showsForms() {
			return "elicitation.form"
		}
	case signals.MethodSample:
		if c.Sampling == nil {
			return "sampling"
		}
		if params.Tools != nil && c.Sampling.Tools == nil {
			return "sampling.tools"
		}
	case signals.MethodListRoots:
		if c.Roots == nil {
			return "roots"
		}
	default: // which no client of any revision knows
		return request.Method
	}
	return ""
}

// lacksForAny is [clientCapabilities.lacks] for all of them.
func (c *clientCapabilities) lacksForAny(requests map[string]signals.InputRequest) string {
	for _, request := range requests {
		if capability := c.lacks(request); capability != "" {
			return capability
		}
	}
	return ""
}
