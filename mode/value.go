package mode

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/roost-dev/roost/esjson"
)

// value is the content of YAML or JSON text, as far as a file of modes needs it.
type value struct {
	kind kind
	text string            // of a string, and of other scalars for messages
	list []*value          // of a list
	keys []string          // of a map, in order
	of   map[string]*value // of a map
}

type kind string

const (
	aMap    kind = "a map"
	aList   kind = "a list"
	aString kind = "text"
	aNumber kind = "a number"
	aBool   kind = "true or false"
	aNull   kind = "null"
)

// member is a member of a map; nil when there is none, or v is no map.
func (v *value) member(key string) *value {
	if v == nil || v.kind != aMap {
		return nil
	}
	return v.of[key]
}

func (v *value) put(key string, member *value) {
	if _, has := v.of[key]; !has {
		v.keys = append(v.keys, key)
	}
	v.of[key] = member
}

// maxDepth bounds how deep a file may nest; modes need five levels.
const maxDepth = 40

var errDeep = errors.New("it nests too deeply")

// readYAML reads one document of YAML 1.2 with its core schema.
func readYAML(text string) (v *value, err error) {
	defer func() {
		if r := recover(); r != nil { // a defect of the parser must not end the program
			v, err = nil, fmt.Errorf("it cannot be read as YAML: %v", r)
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("it is no YAML: %s", first)
	}
	if len(file.Docs) > 1 {
		return nil, errors.New("it holds several YAML documents")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return &value{kind: aNull}, nil
	}
	return (&yamlReader{anchors: map[string]*value{}}).read(file.Docs[0].Body, 0)
}

type yamlReader struct {
	anchors map[string]*value
}

func (y *yamlReader) read(n ast.Node, level int) (*value, error) {
	if level > maxDepth {
		return nil, errDeep
	}
	switch n := n.(type) {
	case nil:
		return &value{kind: aNull}, nil
	case *ast.MappingNode:
		return y.mapping(n.Values, level)
	case *ast.MappingValueNode:
		return y.mapping([]*ast.MappingValueNode{n}, level)
	case *ast.SequenceNode:
		out := &value{kind: aList}
		for _, el := range n.Values {
			v, err := y.read(el, level+1)
			if err != nil {
				return nil, err
			}
			out.list = append(out.list, v)
		}
		return out, nil
	case *ast.LiteralNode:
		return &value{kind: aString, text: n.Value.Value}, nil
	case *ast.AnchorNode:
		v, err := y.read(n.Value, level+1)
		if err == nil {
			y.anchors[n.Name.GetToken().Value] = v
		}
		return v, err
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if v, ok := y.anchors[name]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("the alias *%s refers to no earlier anchor &%s", name, name)
	case *ast.TagNode:
		v, err := y.read(n.Value, level+1)
		if err == nil && n.Start.Value == "!!str" && v.kind != aMap && v.kind != aList {
			return &value{kind: aString, text: v.text}, nil
		}
		return v, err
	}
	t := n.GetToken()
	if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		return &value{kind: aString, text: t.Value}, nil
	}
	if t.Type == token.ImplicitNullType {
		return &value{kind: aNull}, nil
	}
	return plainScalar(t.Value), nil
}

func (y *yamlReader) mapping(members []*ast.MappingValueNode, level int) (*value, error) {
	out := &value{kind: aMap, of: map[string]*value{}}
	for _, m := range members {
		k, err := y.read(m.Key, level+1)
		if err != nil {
			return nil, err
		}
		if _, twice := out.of[k.text]; twice {
			return nil, fmt.Errorf("the key %q appears twice in one map", k.text)
		}
		v, err := y.read(m.Value, level+1)
		if err != nil {
			return nil, err
		}
		out.put(k.text, v)
	}
	return out, nil
}

// The core schema's scalars. The parser itself partly follows YAML 1.1.
var (
	coreNull   = regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)
	coreBool   = regexp.MustCompile(`^(?:true|True|TRUE|false|False|FALSE)$`)
	coreNumber = regexp.MustCompile(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?` +
		`|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

func plainScalar(text string) *value {
	v := &value{kind: aString, text: text}
	switch {
	case coreNull.MatchString(text):
		v.kind = aNull
	case coreBool.MatchString(text):
		v.kind = aBool
	case coreNumber.MatchString(text):
		v.kind = aNumber
	}
	return v
}

// readJSON reads JSON text.
func readJSON(text string) (*value, error) {
	if !esjson.Valid([]byte(text)) {
		return nil, errors.New("it is no JSON")
	}
	return fromJSON([]byte(text), 0)
}

func fromJSON(raw []byte, level int) (*value, error) {
	if level > maxDepth {
		return nil, errDeep
	}
	out := &value{text: string(raw)}
	switch esjson.TypeOf(raw) {
	case esjson.TypeObject:
		out.kind, out.of = aMap, map[string]*value{}
		for k, member := range esjson.Members(raw) {
			v, err := fromJSON(member, level+1)
			if err != nil {
				return nil, err
			}
			out.put(k, v)
		}
	case esjson.TypeArray:
		out.kind = aList
		for el := range esjson.Array(raw) {
			v, err := fromJSON(el, level+1)
			if err != nil {
				return nil, err
			}
			out.list = append(out.list, v)
		}
	case esjson.TypeString:
		out.kind = aString
		out.text, _ = esjson.Unquote(raw) // the text is valid, so reading cannot fail
	case esjson.TypeNull:
		out.kind = aNull
	case esjson.TypeNumber:
		out.kind = aNumber
	default:
		out.kind = aBool
	}
	return out, nil
}
