package schema

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
)

// schemas are JSON schemas of Go types, each named once.
type schemas struct{ all Object }

// hit is the JSON of a api.Hit, which encodes itself.
type hit struct {
	Task    hitTask `json:"task"`
	History string  `json:"history"`
	Number  int     `json:"number"`
	TS      int64   `json:"ts"`
	Snippet string  `json:"snippet"`
	Kind    string  `json:"kind"`
}

type hitTask struct {
	ID        string  `json:"id"`
	Source    string  `json:"source"`
	Title     string  `json:"title"`
	Workspace string  `json:"workspace"`
	Status    string  `json:"status"`
	UpdatedAt *string `json:"updated_at"`
	TS        int64   `json:"ts"`
}

// of is the schema of a type; of a struct, a reference to it. Unlisted members are absent, so that a test finds a
// forgotten one.
func (b *schemas) of(t reflect.Type) Object {
	switch t {
	case reflect.TypeFor[money.USD]():
		return Object{"type": "string", "description": "US dollars, decimal"}
	case reflect.TypeFor[json.RawMessage]():
		return Object{}
	case reflect.TypeFor[api.Hit]():
		return b.of(reflect.TypeFor[hit]())
	}
	if f, ok := reflect.Zero(t).Interface().(interface{ Form() any }); ok {
		return b.of(reflect.TypeOf(f.Form()))
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := b.of(t.Elem())
		if len(inner) == 0 { // anything, null too
			return inner
		}
		return Object{"anyOf": []Object{inner, {"type": "null"}}}
	case reflect.Slice:
		return Object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32, reflect.Uint32:
		return Object{"type": "integer"}
	case reflect.Struct:
		return b.named(t)
	}
	return Object{}
}

func (b *schemas) named(t reflect.Type) Object {
	name := schemaName(t)
	ref := Object{"$ref": "#/components/schemas/" + name}
	if _, ok := b.all[name]; ok {
		return ref
	}
	out := Object{"type": "object", "additionalProperties": false}
	b.all[name] = out // before its members: a type may contain itself
	members, required := Object{}, []string{}
	for _, m := range membersOf(t) {
		members[m.name] = b.of(t.FieldByIndex(m.index).Type)
		if m.required {
			required = append(required, m.name)
		}
	}
	out["properties"], out["required"] = members, required
	return ref
}

// member is one member of the JSON Object of a struct.
type member struct {
	name     string
	index    []int // of the field, for reflect
	required bool  // always written, and required when read
}

// membersOf are the members of a struct, including those of embedded structs; of two with one name the outer one.
func membersOf(t reflect.Type) (out []member) {
	at := map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct || !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		m := member{tag, f.Index, !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")}
		if i, twice := at[tag]; !twice {
			at[tag] = len(out)
			out = append(out, m)
		} else if len(m.index) < len(out[i].index) {
			out[i] = m
		}
	}
	return out
}

// schemaName is the name of a type: Page[store.Summary] is SummaryPage.
func schemaName(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		of = strings.TrimSuffix(of, "]")
		name = of[strings.LastIndexAny(of, "./")+1:] + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
