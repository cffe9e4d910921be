// Package config knows the settings of a user: the settings file, the file of keys and the system's keyring, the
// files of MCP servers, and the sources. It decides which of flag, environment, file and default applies, and what
// that means for the engine. It writes each of these files for every front door: a command, and a route of the API.
//
// It reads a settings file with the line of every setting. It changes one setting and keeps every other byte. A
// change reads, changes and replaces a file under one lock, so that concurrent changes by several processes are all
// kept. Reading takes no lock. Callers that show settings get no key. Errors that a user can correct are *Error.
//
// Limits: the file is TOML, read by a library. Settings are texts, numbers, booleans and lists of texts; dates,
// inline tables and arrays of tables are refused with their line. The library does not edit a file in place, so
// changing one setting works on lines: it writes one line, which replaces the lines of the old value.
package config

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// SyntaxError describes text in the file that cannot be read.
type SyntaxError struct {
	Line    int // from 1
	Problem string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Value is one value of the file: a text, or a list of texts. Numbers and
// booleans are kept as they are spelled, so that an amount of money is never
// rounded on its way.
type Value struct {
	Text   string
	List   []string
	IsList bool
}

// Entry is one setting of the file.
type Entry struct {
	Key   string // dotted
	Value Value
	Line  int    // where it begins, from 1
	end   int    // its last line
	table string // the key without its last name, which may have dots
}

// File is a settings file. The zero value is an empty one.
type File struct {
	Entries []Entry
	mark    string   // the byte order mark, which some editors put in front
	lines   []string // each with its line break
	tables  []table
}

// table is a table of the file: its name, and the line of its header.
type table struct {
	name string
	line int
}

// Parse reads a settings file. The error for a file that it refuses is a *SyntaxError.
func Parse(data []byte) (*File, error) {
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	f := &File{mark: string(data[:len(data)-len(text)]), lines: strings.SplitAfter(string(text), "\n"), tables: []table{{line: 0}}}
	if f.lines[len(f.lines)-1] == "" {
		f.lines = f.lines[:len(f.lines)-1]
	}
	// The file is judged as a whole first: the parser below knows no names.
	if err := toml.Unmarshal(text, new(map[string]any)); err != nil {
		return nil, syntax(err)
	}
	p := unstable.Parser{}
	p.Reset(text)
	prefix := ""
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table:
			name, _, at := keyOf(n)
			f.tables = append(f.tables, table{name, p.Shape(at).Start.Line})
			prefix = name + "."
		case unstable.ArrayTable:
			_, _, at := keyOf(n)
			return nil, &SyntaxError{p.Shape(at).Start.Line, "arrays of tables ([[...]]) are not read here"}
		case unstable.KeyValue:
			e, err := entryOf(&p, n, prefix)
			if err != nil {
				return nil, err
			}
			f.Entries = append(f.Entries, e)
		}
	}
	if err := p.Error(); err != nil {
		return nil, syntax(err)
	}
	return f, nil
}

// syntax makes a *SyntaxError from an error of the library.
func syntax(err error) error {
	line := 1
	if place, is := errors.AsType[*toml.DecodeError](err); is {
		line, _ = place.Position()
	}
	return &SyntaxError{Line: line, Problem: strings.TrimPrefix(err.Error(), "toml: ")}
}

// keyOf returns the dotted name of a setting or a table, the last part of it, and where it begins.
func keyOf(n *unstable.Node) (name, last string, at unstable.Range) {
	var parts []string
	it := n.Key()
	for it.Next() {
		if len(parts) == 0 {
			at = it.Node().Raw
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), parts[len(parts)-1], at
}

func entryOf(p *unstable.Parser, n *unstable.Node, prefix string) (Entry, error) {
	name, last, _ := keyOf(n)
	shape := p.Shape(n.Raw)
	e := Entry{Key: prefix + name, Line: shape.Start.Line, end: shape.End.Line}
	e.table = strings.TrimSuffix(e.Key, "."+last)
	problem := ""
	switch v := n.Value(); v.Kind {
	case unstable.String, unstable.Integer, unstable.Float, unstable.Bool:
		e.Value.Text = string(v.Data)
	case unstable.Array:
		e.Value = Value{IsList: true, List: []string{}}
		it := v.Children()
		for it.Next() {
			if it.Node().Kind != unstable.String {
				problem = "a list holds texts in quotes here"
			}
			e.Value.List = append(e.Value.List, string(it.Node().Data))
		}
	case unstable.InlineTable:
		problem = "inline tables ({...}) are not read here; write [" + e.Key + "]"
	default:
		problem = "a " + v.Kind.String() + " is not a setting's value; write texts in quotes"
	}
	if problem != "" {
		return e, &SyntaxError{e.Line, e.Key + ": " + problem}
	}
	return e, nil
}

// Text is the file as it was read.
func (f *File) Text() []byte { return f.splice(0, 0, "") }

// Get finds a setting.
func (f *File) Get(key string) (Entry, bool) {
	i := f.index(key)
	if i < 0 {
		return Entry{}, false
	}
	return f.Entries[i], true
}

func (f *File) index(key string) int {
	return slices.IndexFunc(f.Entries, func(e Entry) bool { return e.Key == key })
}

// With returns the file's text with one setting changed or added. Every other byte, comments included, is unchanged.
func (f *File) With(key string, v Value) []byte {
	return f.with(key, strings.LastIndexByte(key, '.'), v)
}

// with is With for a key whose table ends at split; -1: it has no table. The rest is one name, also if it has dots.
func (f *File) with(key string, split int, v Value) []byte {
	if i := f.index(key); i >= 0 {
		e := f.Entries[i]
		old := f.lines[e.Line-1]
		name, _, _ := strings.Cut(old, "=")
		line := strings.TrimRight(name, " \t") + " = " + v.spelled() + comment(f.lines[e.end-1], e) + newline(old)
		return f.splice(e.Line-1, e.end, line)
	}
	table, name := key[:max(split, 0)], key[split+1:]
	if strings.Contains(name, ".") {
		name = quoted(name)
	}
	at, found := f.place(table)
	if !found {
		if i := slices.IndexFunc(f.Entries, func(e Entry) bool { return strings.HasPrefix(e.Key, table+".") }); i >= 0 {
			// Dotted settings made the table: a header for it would be a second one.
			if header := f.header(f.Entries[i].Line); header == "" || strings.HasPrefix(table, header+".") {
				at, name, found = f.Entries[i].end, strings.TrimPrefix(table, header+".")+"."+name, true
			}
		}
	}
	line := name + " = " + v.spelled() + f.newline()
	if !found && table != "" {
		line = "[" + table + "]" + f.newline() + line
		if len(f.lines) > 0 {
			line = f.newline() + line
		}
	}
	if at > 0 && !strings.HasSuffix(f.lines[at-1], "\n") {
		line = f.newline() + line
	}
	return f.splice(at, at, line)
}

// Without returns the file's text without one setting, or without the settings of a table. A table's header goes too,
// unless it has other settings, such as those of the profile "a.b" below the profile "a".
func (f *File) Without(key string) []byte {
	gone, used := map[int]bool{}, map[string]bool{} // lines from 0; tables whose settings stay
	one := f.index(key) >= 0
	for _, e := range f.Entries {
		if e.Key != key && (one || e.table != key) {
			used[f.header(e.Line)] = true
			continue
		}
		for i := e.Line - 1; i < e.end; i++ {
			gone[i] = true
		}
	}
	for _, t := range f.tables {
		if t.name == key && !used[key] {
			gone[t.line-1] = true
		}
	}
	text := f.mark
	for i, line := range f.lines {
		if !gone[i] {
			text += line
		}
	}
	return []byte(text)
}

// header returns the name of the table that a line belongs to.
func (f *File) header(line int) string {
	name := ""
	for _, t := range f.tables {
		if t.line < line {
			name = t.name
		}
	}
	return name
}

// place returns the line after the last setting of a table, and whether the table exists. Settings without a table
// precede every header.
func (f *File) place(name string) (at int, found bool) {
	for i, t := range f.tables {
		if t.name != name {
			continue
		}
		at = t.line
		next := len(f.lines) + 1
		if i+1 < len(f.tables) {
			next = f.tables[i+1].line
		}
		for _, e := range f.Entries {
			if e.Line > t.line && e.Line < next {
				at = max(at, e.end)
			}
		}
		if i == 0 && at == 0 {
			at = f.top(next - 1)
		}
		return at, true
	}
	return len(f.lines), false
}

// top returns the line for the first setting without a table: after the comment at the top of the file, which a blank
// line ends, and before the first header, whose line (from 0) is given.
func (f *File) top(header int) int {
	if header == len(f.lines) {
		return header
	}
	for i, line := range f.lines[:header] {
		switch line = strings.TrimSpace(line); {
		case line == "" && i > 0:
			return i + 1
		case !strings.HasPrefix(line, "#"):
			return 0
		}
	}
	return 0
}

func (f *File) splice(from, to int, line string) []byte {
	return []byte(f.mark + strings.Join(f.lines[:from], "") + line + strings.Join(f.lines[to:], ""))
}

func (f *File) newline() string {
	if len(f.lines) > 0 {
		return newline(f.lines[0])
	}
	return "\n"
}

func newline(line string) string {
	if strings.HasSuffix(line, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// comment returns the comment after a value, with the blanks before it.
func comment(line string, e Entry) string {
	line = strings.TrimRight(line, "\r\n")
	for i := 0; i < len(line); i++ {
		if line[i] != '#' {
			continue
		}
		// A # inside the value begins no comment: the text before a comment is a whole value.
		_, value, _ := strings.Cut(line[:i], "=")
		if again, err := Parse([]byte("x = " + value)); err == nil && len(again.Entries) == 1 && e.Line == e.end {
			return line[len(strings.TrimRight(line[:i], " \t")):]
		}
	}
	return ""
}

func (v Value) spelled() string {
	if !v.IsList {
		if v.Text == "true" || v.Text == "false" {
			return v.Text
		}
		if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil && v.Text == strconv.FormatInt(n, 10) {
			return v.Text
		}
		return quoted(v.Text)
	}
	return "[" + strings.Join(api.Each(v.List, quoted), ", ") + "]"
}

// quoted returns a text in quotes. TOML escapes as JSON does, and DEL, too.
func quoted(text string) string {
	return strings.ReplaceAll(string(esjson.Quote(nil, text)), "\x7f", `\u007f`)
}

// RooProfile is a profile from Roo Code's exported settings, as a profile of Roost.
type RooProfile struct {
	Name    string           // its name here
	Roo     string           // its name in Roo
	Values  map[string]Value // of [profiles.NAME]
	Key     string           // its key, "" when the file holds none
	Skipped string           // why it cannot be imported; "" = it can
	Notes   []string         // what the import leaves out
}

// RooExport is the usable content of a file that Roo Code exported.
type RooExport struct {
	Profiles []RooProfile // in the file's order
	Current  string       // Roo's name of the profile in use
	Custom   []byte       // the user's own modes, as a file of modes; nil when there are none

	ModeProfiles []RooModeProfile // which profile is used in which mode, in the file's order
}

// RooModeProfile is the profile that Roo uses in a mode.
type RooModeProfile struct {
	Mode    string // its slug
	Profile string // its name here; "" when it cannot be imported
	Roo     string // its name in Roo; "" when the file does not hold it
}

// ErrNotRoo: the file holds no profiles of Roo Code.
var ErrNotRoo = errors.New("it is no settings file that Roo Code exported: it has no providerProfiles.apiConfigs")

// rooProvider names the settings of one of Roo's providers, and how Roost reaches it. Servers with the API of chat
// completions have an address of their own.
type rooProvider struct {
	provider         string
	model, base, key string // members
	address          string // if base is not set
}

// rooPage has a line for each of Roo's providers: its name there, then the fields of rooProvider; - is an empty one.
//
//go:embed roo.txt
var rooPage string

var rooProviders = func() map[string]rooProvider {
	all := map[string]rooProvider{}
	for line := range strings.Lines(rooPage) {
		f := strings.Fields(line)
		for i := range f {
			f[i] = strings.TrimPrefix(f[i], "-")
		}
		all[f[0]] = rooProvider{f[1], f[2], f[3], f[4], f[5]}
	}
	return all
}()

// Roo reads a settings file that Roo Code exported. It fails only when the data is no such file.
func Roo(data []byte) (RooExport, error) {
	var out RooExport
	data = []byte(strings.TrimPrefix(string(data), "\ufeff"))
	if !esjson.Valid(data) {
		return out, ErrNotRoo
	}
	profiles, _ := esjson.Get(data, "providerProfiles")
	configs, ok := esjson.Get(profiles, "apiConfigs")
	if !ok || esjson.TypeOf(configs) != esjson.TypeObject {
		return out, ErrNotRoo
	}
	out.Current, _ = esjson.GetString(profiles, "currentApiConfigName")
	taken, byID := map[string]bool{}, map[string]int{}
	for name, raw := range esjson.Members(configs) {
		p := rooProfile(name, raw)
		if id, ok := esjson.GetString(raw, "id"); ok && id != "" {
			byID[id] = len(out.Profiles)
		}
		if p.Skipped == "" {
			p.Name = free(slug(name), taken)
			if p.Name != name {
				p.Values["roo_name"] = Value{Text: name}
			}
		}
		out.Profiles = append(out.Profiles, p)
	}
	uses, _ := esjson.Get(profiles, "modeApiConfigs")
	if esjson.TypeOf(uses) == esjson.TypeObject {
		for slug, raw := range esjson.Members(uses) {
			id, _ := esjson.Unquote(raw)
			if !modeSlug().MatchString(slug) {
				continue
			}
			use := RooModeProfile{Mode: slug}
			if i, known := byID[id]; known {
				use.Profile, use.Roo = out.Profiles[i].Name, out.Profiles[i].Roo
			}
			out.ModeProfiles = append(out.ModeProfiles, use)
		}
	}
	global, _ := esjson.Get(data, "globalSettings")
	modes, _ := esjson.Get(global, "customModes")
	if esjson.TypeOf(modes) == esjson.TypeArray {
		out.Custom = append(append([]byte(`{"customModes":`), modes...), '}')
	}
	return out, nil
}

func rooProfile(name string, raw []byte) RooProfile {
	p := RooProfile{Roo: name, Values: map[string]Value{}}
	text := func(member string) string {
		s, _ := esjson.GetString(raw, member)
		return strings.TrimSpace(s)
	}
	provider := text("apiProvider")
	known, ok := rooProviders[provider]
	azure, _ := esjson.GetBool(raw, "openAiUseAzure")
	switch {
	case esjson.TypeOf(raw) != esjson.TypeObject:
		p.Skipped = "it is no object"
	case provider == "":
		p.Skipped = "it names no provider"
	case !ok:
		p.Skipped = fmt.Sprintf("its provider %s is not spoken here", strconv.Quote(provider))
	case provider == "openai" && azure:
		p.Skipped = "Azure's form of the protocol is not spoken here"
	}
	if p.Skipped != "" {
		return p
	}
	set := func(field, value string) {
		if value != "" {
			p.Values[field] = Value{Text: value}
		}
	}
	set("provider", known.provider)
	set("model", text(known.model))
	set("base_url", cmp.Or(text(known.base), known.address))
	p.Key = text(known.key)
	effort := text("reasoningEffort")
	if on, is := esjson.GetBool(raw, "enableReasoningEffort"); is && !on {
		effort = ""
	}
	if effort == "disable" {
		effort = "none"
	}
	if effort == "" || slices.Contains(api.Efforts, effort) {
		set("effort", effort)
	} else {
		p.Notes = append(p.Notes, "its reasoning effort "+strconv.Quote(effort)+" is not known here")
	}
	if n, ok := esjson.GetFloat(raw, "modelMaxTokens"); ok && n >= 1 && n < 1e9 {
		set("max_tokens", strconv.FormatInt(int64(n), 10))
	}
	for _, m := range []string{"modelTemperature", "openAiHeaders", "rateLimitSeconds", "openRouterSpecificProvider"} {
		if v, has := esjson.Get(raw, m); has && string(v) != "null" && string(v) != "0" && string(v) != "{}" && string(v) != `""` {
			p.Notes = append(p.Notes, m+" has no place here")
		}
	}
	return p
}

var notInNames = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// slug turns a text into a name that needs no quotes in TOML.
func slug(name string) string {
	return cmp.Or(strings.Trim(notInNames().ReplaceAllString(name, "-"), "-"), "profile")
}

func free(name string, taken map[string]bool) string {
	out := name
	for n := 2; taken[out]; n++ {
		out = name + "-" + strconv.Itoa(n)
	}
	taken[out] = true
	return out
}
