package server

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
)

// schemas are JSON schemas of Go types, each named once.
type schemas struct{ all object }

// hit is what a store.Hit writes: it has a shape of its own.
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

// of is the schema of a type: of a struct, a reference to it. What nobody lists is not
// there, so that a test finds a member that was forgotten.
func (b *schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[money.USD]():
		return object{"type": "string", "description": "US dollars, decimal"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[store.Hit]():
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
		return object{"anyOf": []object{inner, {"type": "null"}}}
	case reflect.Slice:
		return object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32, reflect.Uint32:
		return object{"type": "integer"}
	case reflect.Struct:
		return b.named(t)
	}
	return object{}
}

func (b *schemas) named(t reflect.Type) object {
	name := schemaName(t)
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, ok := b.all[name]; ok {
		return ref
	}
	out := object{"type": "object", "additionalProperties": false}
	b.all[name] = out // before its members: a type may hold itself
	members, required := object{}, []string{}
	for _, m := range membersOf(t) {
		members[m.name] = b.of(t.FieldByIndex(m.index).Type)
		if m.required {
			required = append(required, m.name)
		}
	}
	out["properties"], out["required"] = members, required
	return ref
}

// member is one member of an object that a struct is written as, or read from.
type member struct {
	name     string
	index    []int // of the field, as reflect has it
	required bool  // it is always written, and must be there when it is read
}

// membersOf are the members of a struct, those of structs that it embeds among them; of
// two with one name it has the outer one.
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

// schemaName names a type: Page[store.Summary] is SummaryPage.
func schemaName(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		of = strings.TrimSuffix(of, "]")
		name = of[strings.LastIndexAny(of, "./")+1:] + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
