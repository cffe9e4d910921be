package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of a tool's description and schema, in bytes.
const (
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
)

// Offer is a tool of a server as a model is told of it.
type Offer struct {
	Server      string
	Tool        string // as the server calls it
	Name        string // as a model does
	Description string
	Schema      json.RawMessage
	ReadOnly    bool // the server says that the tool changes nothing
	Always      bool // its definition lets it run unasked
}

// offers are a server's tools by name, those left out that cannot be offered, with why.
func offers(s Server, tools []*sdk.Tool) (list []Offer, notes []string) {
	seen := map[string]bool{}
	for _, t := range tools {
		if t == nil || slices.Contains(s.Off, t.Name) {
			continue
		}
		out := func(why string) {
			notes = append(notes, fmt.Sprintf("its tool %s is left out: %s", cut(spoken(t.Name), 100), why))
		}
		o := Offer{Server: s.Name, Tool: t.Name, Name: ToolName(s.Name, t.Name), Always: slices.Contains(s.Always, t.Name)}
		if t.Name == "" || !plain(t.Name) {
			out("its name cannot be shown")
			continue
		}
		if seen[o.Name] {
			out("another one goes by the same name, " + o.Name)
			continue
		}
		raw, err := json.Marshal(t.InputSchema)
		if err == nil {
			o.Schema, err = mended(raw)
		}
		if err != nil {
			out(err.Error())
			continue
		}
		o.Description = t.Description
		if t.Annotations != nil {
			o.ReadOnly = t.Annotations.ReadOnlyHint
		}
		if o.Description == "" {
			o.Description = t.Title
		}
		o.Description = cut(spoken(o.Description), maxDescription)
		seen[o.Name] = true
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Offer) int { return strings.Compare(a.Name, b.Name) })
	return list, notes
}

// mended is a schema that every provider takes: an object, with its properties, and
// without what some refuse at the top. The server checks what it is sent itself, so a
// schema that says less costs nothing but a mistake of the model. Members come in
// order, so that the same schema is the same bytes.
func mended(raw []byte) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(raw), maxSchema)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("its schema is no object")
	}
	if schema == nil {
		schema = map[string]any{}
	}
	switch kind := schema["type"].(type) {
	case nil:
	case string:
		if kind != "object" {
			return nil, fmt.Errorf("its schema is for %q and not for an object", cut(spoken(kind), 40))
		}
	default:
		return nil, fmt.Errorf("the type of its schema is none")
	}
	schema["type"] = "object"
	if properties, ok := schema["properties"].(map[string]any); !ok || properties == nil {
		schema["properties"] = map[string]any{}
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else", "$schema", "$id"} {
		delete(schema, name)
	}
	if _, ok := schema["required"].([]any); !ok {
		delete(schema, "required")
	}
	return json.Marshal(schema)
}

// spoken is a server's text without what acts on a terminal or turns text around.
func spoken(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == 0x2028, r == 0x2029:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Resource is something that a server lets be read.
type Resource struct {
	URI         string
	Name        string
	Description string
	Template    bool // URI has variables in braces
}

// resources are what a server lists of them; one that does not answer has none.
func resources(ctx context.Context, s *session) (list []Resource) {
	for r, err := range s.Resources(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		list = append(list, Resource{URI: spoken(r.URI), Name: cut(spoken(r.Name), 100), Description: cut(spoken(r.Description), 300)})
	}
	for r, err := range s.ResourceTemplates(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		list = append(list, Resource{URI: spoken(r.URITemplate), Name: cut(spoken(r.Name), 100), Description: cut(spoken(r.Description), 300), Template: true})
	}
	slices.SortFunc(list, func(a, b Resource) int { return strings.Compare(a.URI, b.URI) })
	return list
}
