package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/money"
)

// Key is one setting.
type Key struct {
	Name   string
	Env    string // overrides the file
	Flag   string // overrides both; "" when no flag does
	Doc    string
	List   bool
	Secret bool     // never shown
	Words  []string // the allowed values; nil: any that passes the check
	check  func(string) error
	read   func(string) (int64, error) // of a number: see Setting.Number; it is its check, too
}

// settings has a line for each setting: its name, the flag that overrides it or -, its kind and its meaning. The kind
// is text, secret, list, webhook (a secret that is an address), effort, a key of readers, or the words a|b of which the
// value is one. Names under profiles. are members of a profile, names under hooks. members of a hook. Each provider that takes a
// key has a name for the key, one for its address and, if it is a cloud, its further settings.
//
//go:embed settings.txt
var settings string

// readers read the kinds of settings that are numbers: a count, a percentage, micro-dollars, milliseconds, bytes.
var readers = map[string]func(string) (int64, error){"count": count, "share": share, "amount": amount, "span": span, "size": Bytes}

// Keys are all settings, in the order of lists. namedKeys are the settings that the tables [profiles.NAME] and
// [hooks.NAME] may hold, by the table: in a profile, a name has the same meaning as for a setting of its own.
var Keys, namedKeys = keys()

// Hooks is the table of the user's commands at events of a run.
const Hooks = "hooks"

const profilesTable = "profiles"

func keys() (list []Key, named map[string][]Key) {
	named = map[string][]Key{}
	for line := range strings.Lines(settings) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		flag, rest, _ := strings.Cut(rest, " ")
		kind, doc, _ := strings.Cut(rest, " ")
		k := Key{Flag: strings.Trim(flag, "-"), Doc: doc, read: readers[kind]}
		k.List, k.Secret = kind == "list", kind == "secret" || kind == "webhook"
		switch {
		case strings.Contains(kind, "|"):
			k.Words = strings.Split(kind, "|")
		case kind == "effort":
			k.Words = api.Efforts
		case kind == "webhook":
			k.check = notify.CheckWebhook
		}
		k.Name = name
		if table, field, of := strings.Cut(name, "."); of && (table == profilesTable || table == Hooks) {
			k.Name = field
			named[table] = append(named[table], k)
			continue
		}
		k.Env = variableOf(name)
		list = append(list, k)
	}
	return list, named
}

// variableOf returns the variable that overrides a setting. Package setup knows those of providers and clouds.
func variableOf(name string) string {
	parts := strings.SplitN(name, ".", 3)
	switch {
	case parts[0] != "providers":
		return "ROOST_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
	case name == "providers.google.api_key":
		return "GOOGLE_API_KEY" // setup also reads GEMINI_API_KEY, before it
	case parts[2] == "api_key":
		return setup.KeyVariables(parts[1])[0]
	case parts[2] == "base_url":
		return setup.AddressVariable(parts[1])
	}
	return setup.CloudVariable(parts[1] + "." + parts[2])
}

// Find returns the key with a name, also of one in a profile or a hook.
func Find(name string) (Key, bool) {
	if k, ok := inTable(name); ok {
		return k, true
	}
	return named(Keys, name)
}

func named(list []Key, name string) (k Key, ok bool) {
	i := slices.IndexFunc(list, func(k Key) bool { return k.Name == name })
	if i >= 0 {
		k = list[i]
	}
	return k, i >= 0
}

func oneOf(words []string, text string) error {
	if slices.Contains(words, text) {
		return nil
	}
	return fmt.Errorf("want one of %s", strings.Join(words, ", "))
}

func count(text string) (int64, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("want a whole number such as 20")
	}
	return int64(n), nil
}

func share(text string) (int64, error) {
	n, err := strconv.Atoi(text)
	if text != "never" && (err != nil || n < 5 || n > 100) {
		return 0, fmt.Errorf("want a percentage between 5 and 100, or never")
	}
	return int64(n), nil
}

func amount(text string) (int64, error) {
	usd, err := money.Parse(text)
	if err != nil || usd < 0 {
		return 0, fmt.Errorf("want an amount of US dollars such as 0.50")
	}
	return int64(usd), nil
}

func span(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("want a time such as 90s, 10m or 2h, in quotes")
	}
	return Millis(d), nil
}

// plain are the settings that name no program, no address, no folder and no right: a wrong value costs at most money
// or time. All other settings could redirect a key, a command or a task.
var plain = []string{
	"provider", "model", "mode", "effort", "max_tokens", "condense_at", "stale", "max_turns", "max_cost", "max_cost_task", "max_cost_day",
	"ask_after_requests", "ask_after_cost", "idle_timeout", "total_timeout", "theme", "notify",
}

// Plain reports whether a log-in from another machine may set the key, too.
func (k Key) Plain() bool { return slices.Contains(plain, k.Name) }

// Check returns why a value does not fit a key; nil if it does.
func (k Key) Check(v Value) error {
	switch {
	case v.IsList && !k.List:
		return fmt.Errorf("want one value, not a list")
	case !v.IsList && k.List:
		return fmt.Errorf(`want a list such as ["git log", "ls"]`)
	case k.Words != nil:
		return oneOf(k.Words, v.Text)
	case k.check != nil:
		return k.check(v.Text)
	case k.read != nil:
		_, err := k.read(v.Text)
		return err
	}
	return nil
}

// Setting is the value that applies to a key.
type Setting struct {
	Key    Key
	Value  Value
	Origin string // "default", the variable's name, or "PATH:LINE"
}

// Set reports whether anybody has set it.
func (s Setting) Set() bool { return s.Origin != Default }

// Number returns the value of a setting that is a number: 0 when it is not set, and a negative number for 0, which means
// none. The value was checked when it was read.
func (s Setting) Number() int64 {
	if s.Value.Text == "" {
		return 0
	}
	n, _ := s.Key.read(s.Value.Text)
	return OrNone(n)
}

// Default is the origin of a setting that is not set.
const Default = "default"

// ValueError is a known setting with a value that it cannot have.
type ValueError struct {
	Origin, Key, Problem string
}

func (e *ValueError) Error() string { return e.Origin + ": " + e.Key + ": " + e.Problem }

// Warning is about a line of the file that belongs to no setting.
type Warning struct {
	Line    int
	Key     string
	Closest string // the key that was perhaps meant; "" when none is near
}

// Resolve returns the settings that apply: the environment takes precedence over the file. Model and address in the file
// count only for the provider in the file. Flags are the caller's. An empty variable counts as not set. Path names the
// file in origins.
func Resolve(f *File, path string, getenv func(string) string) (map[string]Setting, []Warning, error) {
	out := map[string]Setting{}
	var unknown []Warning
	put := func(s Setting) error {
		if s.Set() {
			if err := s.Key.Check(s.Value); err != nil {
				return &ValueError{Origin: s.Origin, Key: s.Key.Name, Problem: err.Error()}
			}
		}
		out[s.Key.Name] = s
		return nil
	}
	for _, k := range Keys {
		s := Setting{Key: k, Origin: Default, Value: Value{IsList: k.List}}
		if e, ok := f.Get(k.Name); ok {
			s.Value, s.Origin = e.Value, path+":"+strconv.Itoa(e.Line)
		}
		if text := getenv(k.Env); text != "" {
			s.Value, s.Origin = Value{Text: text}, k.Env
			if k.List { // one a line: a pattern may contain blanks
				s.Value = Value{IsList: true, List: strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })}
			}
		}
		if err := put(s); err != nil {
			return nil, nil, err
		}
	}
	if e, ok := f.Get("provider"); ok && e.Value.Text != out["provider"].Value.Text {
		for _, name := range []string{"model", "base_url"} {
			if s := out[name]; s.Origin != s.Key.Env { // it is for the provider in the file
				out[name] = Setting{Key: s.Key, Origin: Default}
			}
		}
	}
	for _, e := range f.Entries {
		if k, ok := inTable(e.Key); ok {
			if err := put(Setting{Key: k, Value: e.Value, Origin: path + ":" + strconv.Itoa(e.Line)}); err != nil {
				return nil, nil, err
			}
		} else if _, ok := named(Keys, e.Key); !ok {
			unknown = append(unknown, Warning{Line: e.Line, Key: e.Key, Closest: Closest(e.Key)})
		}
	}
	return out, unknown, nil
}

// sizeUnits are the units at the end of a size, in bytes. Units such as MB are powers of ten.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"b", 1}, {"", 1},
}

// Bytes reads a size such as 2MiB, 64 MB or 1048576. It returns -1 for 0, which means none: in stored sizes, 0 means
// "not set".
func Bytes(text string) (int64, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	for _, u := range sizeUnits {
		digits, is := strings.CutSuffix(word, u.name)
		if !is {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		switch {
		case err != nil || n < 0 || n > (1<<60)/u.bytes:
			return 0, fmt.Errorf("want a size such as 2MiB or 64MiB")
		case n == 0:
			return -1, nil
		}
		return n * u.bytes, nil
	}
	return 0, nil
}

// profileName is the form of the name of a profile or a source: a name that needs no quotes in TOML.
var profileName = lazyregexp.New(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// ValidProfile reports whether a profile can have this name.
func ValidProfile(name string) bool { return profileName().MatchString(name) }

// SourceProfiles is the table of the profiles that answer tasks whose own profile is not known, by the source of the task.
const SourceProfiles = "source_profiles"

// ModeProfiles is the table of the profiles that answer in a mode.
const ModeProfiles = "mode_profiles"

var modeSlug = lazyregexp.New(`^[a-zA-Z0-9-]+$`)

// field splits the name of a setting in a profile or a hook into table, entry and field.
func field(name string) (table, entry, field string, ok bool) {
	table, rest, _ := strings.Cut(name, ".")
	i := strings.LastIndexByte(rest, '.')
	if namedKeys[table] == nil || i < 0 || !ValidProfile(rest[:i]) {
		return "", "", "", false
	}
	return table, rest[:i], rest[i+1:], true
}

// inTable returns the key of a setting in a profile or a hook, or of the profile of a source or of a mode.
func inTable(name string) (Key, bool) {
	if source, ok := strings.CutPrefix(name, SourceProfiles+"."); ok && ValidProfile(source) {
		return Key{Name: name, Doc: "the profile of its tasks whose own is not known"}, true
	}
	if slug, ok := strings.CutPrefix(name, ModeProfiles+"."); ok && modeSlug().MatchString(slug) {
		return Key{Name: name, Doc: "the profile that answers in that mode, for tasks without a provider of their own"}, true
	}
	table, _, member, _ := field(name)
	k, ok := named(namedKeys[table], member)
	k.Name = name
	return k, ok
}

// Profiles returns the profiles of a file in its order, each with its settings, by the field's name.
func Profiles(values map[string]Setting, f *File) (names []string, fields map[string]map[string]Setting) {
	return Table(profilesTable, values, f)
}

// Table returns the entries of a table, such as Hooks, in the form in which Profiles returns profiles.
func Table(name string, values map[string]Setting, f *File) (names []string, fields map[string]map[string]Setting) {
	fields = map[string]map[string]Setting{}
	for _, e := range f.Entries {
		table, entry, member, ok := field(e.Key)
		s, known := values[e.Key]
		if !ok || !known || table != name {
			continue
		}
		if fields[entry] == nil {
			names, fields[entry] = append(names, entry), map[string]Setting{}
		}
		fields[entry][member] = s
	}
	return names, fields
}

// Closest returns the key that a mistyped name most likely means, "" when none is near.
func Closest(name string) string {
	list, prefix := Keys, ""
	if table, entry, member, ok := field(name); ok {
		list, prefix, name = namedKeys[table], table+"."+entry+".", member
	}
	near := api.Nearest(name, api.Each(list, func(k Key) string { return k.Name }))
	if near == "" {
		return ""
	}
	return prefix + near
}
