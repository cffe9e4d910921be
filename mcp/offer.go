package mcp

import (
	"context"
	"encoding/json"
	"errors"
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

// Offer describes a server's tool to a model.
type Offer struct {
	Server      string
	Tool        string // the server's name for it
	Name        string // the model's name for it
	Description string
	Schema      json.RawMessage
	ReadOnly    bool // according to the server, the tool changes nothing
	Always      bool // its definition lets it run unasked
}

// offersOf are a server's tools by name. notes has the tools that cannot be offered, and why.
func offersOf(s Server, tools []*sdk.Tool) (list []Offer, notes []string) {
	seen := map[string]bool{}
	for _, t := range tools {
		if t == nil || slices.Contains(s.Off, t.Name) {
			continue
		}
		out := func(why string) {
			notes = append(notes, fmt.Sprintf("its tool %s is left out: %s", cut(printable(t.Name), 100), why))
		}
		o := Offer{Server: s.Name, Tool: t.Name, Name: ToolName(s.Name, t.Name), Always: slices.Contains(s.Always, t.Name)}
		if t.Name == "" || !isPlainName(t.Name) {
			out("its name cannot be shown")
			continue
		}
		if seen[o.Name] {
			out("another tool has the same name, " + o.Name)
			continue
		}
		raw, err := json.Marshal(t.InputSchema)
		if err == nil {
			o.Schema, err = repairedSchema(raw)
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
		o.Description = cut(printable(o.Description), maxDescription)
		seen[o.Name] = true
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Offer) int { return strings.Compare(a.Name, b.Name) })
	return list, notes
}

// repairedSchema is a schema that every provider accepts: an object, with its properties, and
// without members that some providers refuse at the top. The server checks its input itself,
// so a schema that demands less risks only a mistake of the model. Members are in a fixed
// order, so that the same schema gives the same bytes.
func repairedSchema(raw []byte) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(raw), maxSchema)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, errors.New("its schema is not a JSON object")
	}
	if schema == nil {
		schema = map[string]any{}
	}
	switch kind := schema["type"].(type) {
	case nil:
	case string:
		if kind != "object" {
			return nil, fmt.Errorf("its schema describes %q, not an object", cut(printable(kind), 40))
		}
	default:
		return nil, errors.New("the type in its schema is not a string")
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

// printable is a server's text without characters that control a terminal or the direction of text.
func printable(text string) string {
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

// Resource is something that a server offers for reading.
type Resource struct {
	URI         string
	Name        string
	Description string
	Template    bool // URI has variables in braces
}

// resources are the resources that a server lists, none when it does not answer.
func resources(ctx context.Context, s *session) (list []Resource) {
	for r, err := range s.Resources(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		list = append(list, Resource{URI: printable(r.URI), Name: cut(printable(r.Name), 100),
			Description: cut(printable(r.Description), 300)})
	}
	for r, err := range s.ResourceTemplates(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		list = append(list, Resource{
			URI:         printable(r.URITemplate),
			Name:        cut(printable(r.Name), 100),
			Description: cut(printable(r.Description), 300),
			Template:    true,
		})
	}
	slices.SortFunc(list, func(a, b Resource) int { return strings.Compare(a.URI, b.URI) })
	return list
}
