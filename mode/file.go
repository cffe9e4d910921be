package mode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// maxFile bounds a file of modes, and maxText each text in it, in bytes: every request contains a mode's text.
const (
	maxFile = 256 << 10
	maxText = 32 << 10
)

// File is the content of a file of modes.
type File struct {
	Modes    []Mode
	Found    bool     // the file holds custom modes, usable or not
	Problems []string // the unusable parts, and why
}

// Parse reads a file of modes: YAML, or JSON when that fails. It never fails as a whole: Problems lists what cannot
// be used. source is the source of the modes, even if the file claims another; path is stored with them, for people.
func Parse(text, source, path string) File {
	if len(text) > maxFile {
		return File{Problems: []string{fmt.Sprintf("it has more than %d bytes, and is not read", maxFile)}}
	}
	root, err := readRoot(text)
	if err != nil {
		return File{Problems: []string{err.Error()}}
	}
	return readModes(root, source, path)
}

// readModes reads the modes of a parsed file.
func readModes(root *value, source, path string) File {
	list := root.member("customModes")
	if list == nil || list.kind == aNull || list.falsy() {
		return File{}
	}
	f := File{Found: true}
	if list.kind != aList {
		f.Problems = []string{"customModes is " + string(list.kind) + ", and must be a list"}
		return f
	}
	for i, el := range list.list {
		m, err := readMode(el)
		name := fmt.Sprintf("mode %d", i+1)
		if m.Slug != "" {
			name = fmt.Sprintf("mode %q", m.Slug)
		}
		if err == nil && slices.ContainsFunc(f.Modes, func(have Mode) bool { return have.Slug == m.Slug }) {
			err = errors.New("its slug appears twice in the file; the first one counts")
		}
		if err != nil {
			f.Problems = append(f.Problems, name+" is left out: "+err.Error())
			continue
		}
		m.Source, m.Path = source, path
		f.Modes = append(f.Modes, m)
	}
	return f
}

// readRoot parses YAML, or JSON where the text is no YAML.
func readRoot(text string) (*value, error) {
	root, err := readYAML(typography.Replace(strings.TrimPrefix(text, "\ufeff")))
	if err != nil {
		if other, failed := readJSON(text); failed == nil {
			return other, nil
		}
	}
	return root, err
}

// falsy reports whether JavaScript counts the value as false.
func (v *value) falsy() bool {
	switch v.kind {
	case aString:
		return v.text == ""
	case aBool:
		return strings.EqualFold(v.text, "false")
	case aNumber:
		return strings.Trim(v.text, "+-0.") == "" || strings.EqualFold(v.text, ".nan")
	}
	return false
}

// typography reverses the changes that word processors and chats make to YAML, as Roo does.
var typography = strings.NewReplacer(
	"\r\n", "\n", "\r", "\n", "\u00a0", " ", "\u200b", "", "\u200c", "", "\u200d", "",
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2212", "-",
	"\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`,
)

var noBlanks = strings.NewReplacer(" ", "", "\t", "")

var slugForm = lazyregexp.New(`^[a-zA-Z0-9-]+$`)

// readMode reads one mode. With an error it still returns the name of the mode.
func readMode(v *value) (Mode, error) {
	m := Mode{Groups: []Group{}}
	if v.kind != aMap {
		return m, fmt.Errorf("it is %s, and must be a map with slug, name, roleDefinition and groups", v.kind)
	}
	var problems []string
	text := func(to *string, key string, required bool) {
		member := v.member(key)
		switch {
		case member == nil && !required:
		case member == nil:
			problems = append(problems, key+" is missing")
		case member.kind != aString:
			problems = append(problems, fmt.Sprintf("%s is %s, and must be text (put it in quotes)", key, member.kind))
		case len(member.text) > maxText:
			problems = append(problems, fmt.Sprintf("%s has %d bytes, and may have %d", key, len(member.text), maxText))
		case required && member.text == "":
			problems = append(problems, key+" is empty")
		default:
			*to = member.text
		}
	}
	text(&m.Slug, "slug", true)
	if m.Slug != "" && !slugForm().MatchString(m.Slug) {
		problems = append(problems, "its slug may hold only letters, digits and dashes")
	}
	text(&m.Name, "name", true)
	text(&m.RoleDefinition, "roleDefinition", true)
	text(&m.WhenToUse, "whenToUse", false)
	text(&m.Description, "description", false)
	text(&m.CustomInstructions, "customInstructions", false)
	var source string
	text(&source, "source", false)
	if s := v.member("source"); s != nil && s.kind == aString && source != Global && source != Project {
		problems = append(problems, "source must be global or project")
	}
	switch list := v.member("groups"); {
	case list == nil:
		problems = append(problems, "groups is missing")
	case list.kind != aList:
		problems = append(problems, fmt.Sprintf("groups is %s, and must be a list", list.kind))
	default:
		for _, el := range list.list {
			g, keep, err := readGroup(el)
			switch {
			case err != nil:
				problems = append(problems, err.Error())
			case !keep:
			case slices.ContainsFunc(m.Groups, func(have Group) bool { return have.Name == g.Name }):
				problems = append(problems, "the group "+g.Name+" appears twice")
			default:
				m.Groups = append(m.Groups, g)
			}
		}
	}
	if len(problems) > 0 {
		return m, errors.New(strings.Join(problems, "; "))
	}
	return m, nil
}

// obsoleteGroups are groups of older versions: they are accepted and ignored.
var obsoleteGroups = []string{"browser"}

// readGroup reads a name, or a list of a name and options. keep is false for an obsolete group.
func readGroup(v *value) (g Group, keep bool, err error) {
	name := v
	if v.kind == aList && len(v.list) > 0 {
		name = v.list[0]
	}
	if name.kind == aString && slices.Contains(obsoleteGroups, name.text) {
		return g, false, nil
	}
	if _, known := groups[name.text]; name.kind != aString || !known {
		return g, false, fmt.Errorf("a group is %s %s; there are read, edit, command, mcp and modes", name.kind, name.text)
	}
	g.Name = name.text
	if v.kind == aString {
		return g, true, nil
	}
	if len(v.list) != 2 || v.list[1].kind != aMap {
		return g, false, fmt.Errorf("the group %s must be its name, or its name and a map of fileRegex and description", g.Name)
	}
	g.limited = true
	for _, option := range []struct {
		key   string
		to    *string
		empty *bool
	}{{"fileRegex", &g.FileRegex, &g.emptyRegex}, {"description", &g.Description, &g.emptyDescription}} {
		switch member := v.list[1].member(option.key); {
		case member == nil:
		case member.kind != aString:
			return g, false, fmt.Errorf("%s of the group %s is %s, and must be text", option.key, g.Name, member.kind)
		default:
			*option.to, *option.empty = member.text, member.text == ""
		}
	}
	if g.FileRegex != "" {
		if g.files, err = compile(g.FileRegex); err != nil {
			return g, false, fmt.Errorf("fileRegex of the group %s: %w", g.Name, err)
		}
	}
	return g, true, nil
}

// ReadFile reads a file of modes; a missing file holds none.
func ReadFile(fsys fs.FS, name, source, path string) File {
	data, err := inputfile.ReadFS(fsys, name, maxFile+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}
	case err != nil:
		return File{Problems: []string{fmt.Sprintf("it cannot be read: %v", err)}}
	}
	return Parse(string(data), source, path)
}

// value is the content of YAML or JSON text, as far as modes need it.
type value struct {
	kind kind
	text string            // of a string, and of other scalars for messages
	list []*value          // of a list
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

// member returns a member of a map; nil when there is none, or v is no map.
func (v *value) member(key string) *value {
	if v == nil || v.kind != aMap {
		return nil
	}
	return v.of[key]
}

// maxDepth bounds the nesting of a file; modes need five levels.
const maxDepth = 40

// Bounds of the brackets of a text, of the dashes in a line of it, and of its lines: the parser of YAML needs memory for
// the square of the depth, and a bracket or dash may be a level. It needs time for the square of the number of keys and
// items, and for each blank line at the end of a text that of reading the text once more.
const (
	maxBrackets = 10_000
	maxDashes   = 1000
	maxLines    = 10_000
	maxBlank    = 100 // in a row
)

var (
	errDeep = errors.New("it nests too deeply")
	errLong = fmt.Errorf("it has more than %d lines, or than %d blank ones in a row", maxLines, maxBlank)
)

// readYAML reads one document of YAML 1.2 with its core schema.
func readYAML(text string) (v *value, err error) {
	defer func() {
		if r := recover(); r != nil { // a defect of the parser must not end the program
			v, err = nil, fmt.Errorf("it cannot be read as YAML: %v", r)
		}
	}()
	deep := strings.Count(text, "[")+strings.Count(text, "{") > maxBrackets
	for line := range strings.Lines(text) {
		deep = deep || strings.Count(line, "- ")+strings.Count(line, "-\t") > maxDashes
	}
	switch {
	case deep:
		return nil, errDeep
	case strings.Count(text, "\n") > maxLines || strings.Contains(noBlanks.Replace(text), strings.Repeat("\n", maxBlank+2)):
		return nil, errLong
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if at, ok := errors.AsType[interface {
		error
		FormatError(colored, source bool) string
	}](err); ok {
		err = errors.New(at.FormatError(false, false)) // with the source it takes time for the square of the text's length
	}
	if err != nil {
		return nil, fmt.Errorf("it is no YAML: %w", err)
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
		list, err := api.TryEach(n.Values, func(el ast.Node) (*value, error) { return y.read(el, level+1) })
		return &value{kind: aList, list: list}, err
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
		out.of[k.text] = v
	}
	return out, nil
}

// The scalars of the core schema. The parser alone would partly follow YAML 1.1.
var (
	coreNull   = lazyregexp.New(`^(?:~|null|Null|NULL|)$`)
	coreBool   = lazyregexp.New(`^(?:true|True|TRUE|false|False|FALSE)$`)
	coreNumber = lazyregexp.New(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?` +
		`|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

func plainScalar(text string) *value {
	v := &value{kind: aString, text: text}
	switch {
	case coreNull().MatchString(text):
		v.kind = aNull
	case coreBool().MatchString(text):
		v.kind = aBool
	case coreNumber().MatchString(text):
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
			out.of[k] = v
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
		out.kind, out.text = aString, esjson.Text(raw)
	case esjson.TypeNull:
		out.kind = aNull
	case esjson.TypeNumber:
		out.kind = aNumber
	default:
		out.kind = aBool
	}
	return out, nil
}

// RuleFile is a file of rules that comes with an exported mode.
type RuleFile struct {
	Path string // in the folder of the mode's rules, with "/" between its parts
	Text string
}

// Exported reads modes as Roo exports them, in YAML or JSON, with the files of rules that come with them, by slug. It
// leaves out a path that leads out of the mode's folder, or to a file that is no rule, and lists it in Problems.
func Exported(text string) (File, map[string][]RuleFile) {
	root, err := readJSON(strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		root, err = readRoot(text)
	}
	if err != nil {
		return File{Problems: []string{err.Error()}}, nil
	}
	f := readModes(root, Global, "")
	rules, problems := exportedRules(root.member("customModes"))
	f.Problems = append(f.Problems, problems...)
	return f, rules
}

func exportedRules(list *value) (rules map[string][]RuleFile, problems []string) {
	rules = map[string][]RuleFile{}
	if list == nil || list.kind != aList {
		return rules, nil
	}
	for _, m := range list.list {
		slug, files := m.member("slug"), m.member("rulesFiles")
		if slug == nil || slug.kind != aString || !slugForm().MatchString(slug.text) || files == nil || files.kind != aList {
			continue
		}
		if _, twice := rules[slug.text]; twice {
			continue // the first mode with a slug counts
		}
		kept := []RuleFile{}
		for i, el := range files.list {
			f, err := ruleFile(el)
			if err == nil && slices.ContainsFunc(kept, func(have RuleFile) bool { return have.Path == f.Path }) {
				err = fmt.Errorf("%q appears twice", f.Path)
			}
			if err != nil {
				problems = append(problems, fmt.Sprintf("file %d of the rules of mode %q is left out: %v", i+1, slug.text, err))
			} else if kept = append(kept, f); len(kept) == maxRuleFiles && i+1 < len(files.list) {
				text := fmt.Sprintf("of the rules of mode %q only the first %d files are used", slug.text, maxRuleFiles)
				problems = append(problems, text)
				break
			}
		}
		rules[slug.text] = kept
	}
	return rules, problems
}

// exportedFolder matches the beginning that Roo puts before the path: the folder itself.
var exportedFolder = lazyregexp.New(`^(?:\.roo/)?rules-[^/]+/`)

// ruleFile reads one file of an exported mode's rules.
func ruleFile(v *value) (RuleFile, error) {
	name, content := v.member("relativePath"), v.member("content")
	switch {
	case name == nil || name.kind != aString:
		return RuleFile{}, errors.New("it has no path")
	case content == nil || content.kind != aString || content.text == "":
		return RuleFile{}, fmt.Errorf("%q has no text", name.text)
	case len(content.text) > maxRuleFile:
		return RuleFile{}, fmt.Errorf("%q has more than %d bytes", name.text, maxRuleFile)
	case strings.ContainsRune(content.text, 0):
		return RuleFile{}, fmt.Errorf("%q is no text", name.text)
	}
	f := RuleFile{Path: strings.ReplaceAll(name.text, `\`, "/"), Text: content.text}
	if strings.HasPrefix(f.Path, "/") || strings.Contains(f.Path, ":") {
		return RuleFile{}, fmt.Errorf("%q leads out of the folder of its mode's rules", name.text)
	}
	f.Path = exportedFolder().ReplaceAllString(path.Clean(f.Path), "")
	switch {
	case f.Path == "." || !fs.ValidPath(f.Path):
		return RuleFile{}, fmt.Errorf("%q leads out of the folder of its mode's rules", name.text)
	case len(f.Path) > 200 || strings.Count(f.Path, "/") >= maxRuleDepth ||
		strings.ContainsFunc(f.Path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return RuleFile{}, fmt.Errorf("%q is no name for a file of rules", name.text)
	case noRule(path.Base(f.Path)):
		return RuleFile{}, fmt.Errorf("%q is a name that no rules are read from", name.text)
	}
	return f, nil
}

// Encode writes modes as a file of modes, in JSON. Parse reads the same modes back.
func Encode(modes []Mode) []byte {
	list := api.Each(modes, func(m Mode) []byte {
		return esjson.ObjectOf("slug", m.Slug, "name", m.Name, "roleDefinition", m.RoleDefinition,
			"whenToUse", esjson.Given(m.WhenToUse), "description", esjson.Given(m.Description),
			"customInstructions", esjson.Given(m.CustomInstructions), "groups", esjson.List(api.Each(m.Groups, encodeGroup)))
	})
	var out bytes.Buffer
	_ = json.Indent(&out, esjson.ObjectOf("customModes", esjson.List(list)), "", "  ") // it is valid JSON
	return append(out.Bytes(), '\n')
}

// encodeGroup writes a group as its name, or as its name and the options that the file gave.
func encodeGroup(g Group) []byte {
	name := esjson.Quote(nil, g.Name)
	if !g.limited && g.FileRegex == "" {
		return name
	}
	var options esjson.Object
	if g.FileRegex != "" || g.emptyRegex {
		options.String("fileRegex", g.FileRegex)
	}
	if g.Description != "" || g.emptyDescription {
		options.String("description", g.Description)
	}
	return esjson.List([][]byte{name, options.Bytes()})
}
