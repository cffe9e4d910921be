// Package mode defines the modes of a task: which tools a model may use and which files it may edit, its role, and
// which of the user's rules it gets. Modes and rules are Roo's: five built in, those of a workspace's .roomodes, and
// those of the user's own custom_modes.yaml.
//
// It is pure: it takes text, or an fs.FS to read from, and returns values. The same files give the same bytes, in a
// fixed order, because they form the system prompt and providers cache requests by their prefix.
//
// It differs from Roo on purpose in three ways. An unusable mode is left out alone, with a reason, where Roo drops
// every mode of the file. A pattern for files applies to every call that edits, where Roo checks only calls with
// certain parameters. A pattern that takes too long to match a name does not match it.
//
// Limits: a file of modes has at most 256 KiB and 10,000 brackets, a text in it 32 KiB, a pattern 4 KiB; the system
// prompt lists 60 modes; see rules.go for the limits of rules.
package mode

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/dlclark/regexp2/v2"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// The sources of modes.
const (
	BuiltIn = "builtin"
	Global  = "global"
	Project = "project"
)

// Default is the mode of a task that names none; Fallback the mode of a task whose mode no longer exists, as in Roo.
const (
	Default  = "code"
	Fallback = "architect"
)

// Mode is one mode.
type Mode struct {
	Slug               string  `json:"slug"` // letters, digits and dashes
	Name               string  `json:"name"`
	Source             string  `json:"source"`         // builtin, global, project
	Path               string  `json:"path,omitempty"` // the file that defines it, "" for a built-in one
	Description        string  `json:"description,omitempty"`
	WhenToUse          string  `json:"when_to_use,omitempty"`
	Groups             []Group `json:"groups"`
	RoleDefinition     string  `json:"role_definition"`
	CustomInstructions string  `json:"custom_instructions,omitempty"`
}

// Group is one group of tools that a mode may use.
type Group struct {
	Name string `json:"name"` // read, edit, command, mcp, modes
	// FileRegex is a JavaScript pattern: with the group edit, only files whose path matches may be edited. "" = all.
	FileRegex   string `json:"file_regex,omitempty"`
	Description string `json:"description,omitempty"` // of the pattern, for people

	limited bool // the file gave options, even empty ones
	// emptyRegex and emptyDescription: the option was "", and is exported as "".
	emptyRegex, emptyDescription bool
	files                        *pattern
}

// Set holds all modes of a workspace. The zero value holds the built-in modes.
type Set struct {
	custom []Mode
}

// Merge makes a set of a workspace's modes and the user's own. A workspace's mode takes precedence over a user's mode
// with the same slug, and both over a built-in one. Of several modes with one slug in a list, the first counts.
func Merge(project, global []Mode) Set {
	var s Set
	add := func(list []Mode, source string) {
		for _, m := range list {
			if !slices.ContainsFunc(s.custom, func(have Mode) bool { return have.Slug == m.Slug }) {
				m.Source = source
				s.custom = append(s.custom, m)
			}
		}
	}
	add(project, Project)
	add(global, Global)
	return s
}

// Custom returns the modes that are not built in, those of the workspace first.
func (s Set) Custom() []Mode { return slices.Clone(s.custom) }

// All returns the built-in modes in Roo's order, redefined ones in their new form, and then the others.
func (s Set) All() []Mode {
	out := slices.Clone(makeBuiltIn())
	for _, m := range s.custom {
		if i := slices.IndexFunc(out, func(have Mode) bool { return have.Slug == m.Slug }); i >= 0 {
			out[i] = m
		} else {
			out = append(out, m)
		}
	}
	return out
}

// Find returns the mode with a slug.
func (s Set) Find(slug string) (Mode, bool) {
	all := slices.Concat(makeBuiltIn(), s.custom) // a later mode of a slug replaces earlier ones
	for _, m := range slices.Backward(all) {
		if m.Slug == slug {
			return m, true
		}
	}
	return Mode{}, false
}

// Slugs returns the slugs of all modes, in order.
func (s Set) Slugs() []string {
	return api.Each(s.All(), func(m Mode) string { return m.Slug })
}

// Redefined returns the slugs of built-in modes that a workspace's file redefines, to warn a person who chooses one.
func (s Set) Redefined() []string {
	return api.Some(makeBuiltIn(), func(b Mode) (string, bool) {
		m, _ := s.Find(b.Slug)
		return b.Slug, m.Source == Project
	})
}

// UnknownError: there is no mode with that slug.
type UnknownError struct {
	Slug    string
	Closest []string // similar slugs, the most similar first
	Known   []string // all slugs
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no mode %q; there are %s", e.Slug, strings.Join(e.Known, ", "))
}

// Lookup is Find with an error that helps: an *UnknownError.
func (s Set) Lookup(slug string) (Mode, error) {
	if m, ok := s.Find(slug); ok {
		return m, nil
	}
	return Mode{}, &UnknownError{Slug: slug, Closest: s.closestSlugs(slug), Known: s.Slugs()}
}

// closestSlugs returns the slugs of modes whose slug or name resembles the given one.
func (s Set) closestSlugs(given string) []string {
	type scored struct {
		slug  string
		score int
	}
	word := normalizeName(given)
	var found []scored
	for _, m := range s.All() {
		score := min(api.Distance(word, normalizeName(m.Slug)), api.Distance(word, normalizeName(m.Name)))
		if word != "" && (strings.HasPrefix(normalizeName(m.Slug), word) || strings.HasPrefix(word, normalizeName(m.Slug))) {
			score = min(score, 1)
		}
		if score <= max(1, len(word)/3) {
			found = append(found, scored{m.Slug, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.score - b.score })
	return api.Each(found, func(f scored) string { return f.slug })
}

// normalizeName reduces a name to its lower-case letters and digits.
func normalizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s[:min(len(s), 64)])
}

// Text returns the part of the system prompt with the user's wishes for this mode: the mode's own instructions and
// the rules from files. It is "" when there are none.
func (r Rules) Text(m Mode) string {
	var parts []string
	if s := strings.TrimSpace(m.CustomInstructions); s != "" {
		parts = append(parts, "Mode-specific Instructions:\n"+s)
	}
	files := api.Each(r.Sections, func(s Section) string {
		return fmt.Sprintf("# Rules from %s:\n%s", s.Title, s.Text)
	})
	if len(files) > 0 {
		parts = append(parts, "Rules:\n\n"+strings.Join(files, "\n\n"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "====\n\nUSER'S CUSTOM INSTRUCTIONS\n\n" +
		"The user gives these instructions. Follow them as well as you can, " +
		"as long as they do not contradict the rules above about tools.\n\n" +
		strings.Join(parts, "\n\n")
}

// Text returns the part of the system prompt that lists the modes.
func (s Set) Text() string {
	var b strings.Builder
	b.WriteString("====\n\nMODES\n\n")
	all := s.All()
	for i, m := range all {
		if i == maxListed {
			fmt.Fprintf(&b, "(%d more modes are not listed.)\n", len(all)-i)
			break
		}
		role, _, _ := strings.Cut(m.RoleDefinition, ".") // Roo uses the first sentence of the role
		about := cmp.Or(m.WhenToUse, m.Description, role)
		fmt.Fprintf(&b, "- %s (%s): %s\n", oneLine(m.Name, 100), m.Slug, oneLine(about, 400))
	}
	return strings.TrimRight(b.String(), "\n")
}

// maxListed is the number of modes that the system prompt lists.
const maxListed = 60

// oneLine puts a text on one line and cuts it after limit characters.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + "..."
		}
	}
	return s
}

// makeBuiltIn returns the built-in modes: slugs, names, groups and order are Roo's, the texts are Roost's own.
var makeBuiltIn = sync.OnceValue(func() []Mode {
	markdown, _ := compile(`\.md$`)
	group := func(names ...string) []Group {
		return api.Each(names, func(n string) Group { return Group{Name: n} })
	}
	all := group("read", "edit", "command", "mcp")
	return []Mode{
		{
			Slug:        "architect",
			Name:        "🏗️ Architect",
			Source:      BuiltIn,
			Description: "Plan and design before anything is built",
			WhenToUse:   "For planning: taking a problem apart, comparing designs, writing a specification before the code.",
			Groups: []Group{
				{Name: "read"},
				{
					Name:        "edit",
					FileRegex:   `\.md$`,
					Description: "Markdown files only",
					limited:     true,
					files:       markdown,
				},
				{Name: "mcp"},
			},
			RoleDefinition: "You are Roost, a technical lead who finds out what is needed and how things are before making a " +
				"plan. The plan is what the user reviews before anybody carries it out.",
			CustomInstructions: "1. Gather what bears on the task with the tools for reading.\n" +
				"2. Ask the user what only the user knows.\n" +
				"3. Break the task into steps with update_todo_list. Each step has one clear outcome and can be done by a " +
				"person that reads nothing but the step. Give no estimates of time.\n" +
				"4. Bring the list up to date as you learn more.\n" +
				"5. Ask the user whether the plan is right, and change it until it is.\n" +
				"6. Then ask with switch_mode for the mode that carries it out.\n" +
				"Prefer a short list to a long document. When a plan has to be a file, put it below plans/ unless the user " +
				"wants another place.",
		},
		{
			Slug:        "code",
			Name:        "💻 Code",
			Source:      BuiltIn,
			Description: "Write, change and restructure code",
			WhenToUse:   "For writing and changing code: features, fixes, refactoring, new files, in any language.",
			Groups:      all,
			RoleDefinition: "You are Roost, a software engineer who works in the user's workspace with the tools given here, " +
				"and knows many languages, frameworks and designs.",
		},
		{
			Slug:           "ask",
			Name:           "❓ Ask",
			Source:         BuiltIn,
			Description:    "Answer and explain",
			WhenToUse:      "For explanations and answers about code, concepts and technologies, without changing anything.",
			Groups:         group("read", "mcp"),
			RoleDefinition: "You are Roost, who answers questions about software, its technologies and the code in the user's workspace.",
			CustomInstructions: "Answer thoroughly, from the code where the question is about it. Do not go on to change " +
				"code unless the user asks for that. " +
				"A Mermaid diagram is welcome where it makes something clear.",
		},
		{
			Slug:           "debug",
			Name:           "🪲 Debug",
			Source:         BuiltIn,
			Description:    "Find and mend what is wrong",
			WhenToUse:      "For finding out why something fails: errors, traces, unexpected results, before they are mended.",
			Groups:         all,
			RoleDefinition: "You are Roost, who finds the causes of failures in software step by step.",
			CustomInstructions: "Think of several possible causes, five or more, and choose the one or two that fit best. " +
				"Prove them, by logging or a test, before you change anything else. " +
				"Ask the user whether the diagnosis is right before you mend it.",
		},
		{
			Slug:        "orchestrator",
			Name:        "🪃 Orchestrator",
			Source:      BuiltIn,
			Description: "Coordinate work over several modes",
			WhenToUse:   "For large work of many parts that belong to different modes.",
			Groups:      []Group{},
			RoleDefinition: "You are Roost, who coordinates large work by taking it apart and giving each part to the mode " +
				"that fits it best.",
			CustomInstructions: "1. Break the task into parts that can be done one by one. Give each part to the mode that " +
				"fits it, with all that is needed to do it, what is to be done and what is not, and what to report at its end.\n" +
				"2. Keep track of the parts, and decide what comes next from what they reported.\n" +
				"3. Ask the user when you need to know more to divide the work.\n" +
				"4. At the end, put the results together in one answer.",
		},
	}
})

// groups lists Roo's tools by group.
var groups = map[string][]string{
	"read":    {"read_file", "search_files", "list_files", "codebase_search"},
	"edit":    {"apply_diff", "write_to_file", "generate_image", "edit", "search_replace", "edit_file", "apply_patch"},
	"command": {"execute_command", "read_command_output"},
	"mcp":     {"use_mcp_tool", "access_mcp_resource"},
	"modes":   {"switch_mode", "new_task"},
}

// always lists the tools of every mode.
var always = []string{
	"ask_followup_question", "attempt_completion", "switch_mode", "new_task", "update_todo_list", "run_slash_command", "skill",
}

// aliases are other names of tools.
var aliases = map[string]string{"write_file": "write_to_file", "search_and_replace": "edit"}

func canonical(tool string) string { return cmp.Or(aliases[tool], tool) }

// GroupOf returns the group of a tool of Roo: "" for a tool that Roo does not know, "always" for one that no mode
// forbids.
func GroupOf(tool string) string {
	switch name := canonical(tool); {
	case slices.Contains(always, tool):
		return "always"
	case strings.HasPrefix(tool, "mcp_") || strings.HasPrefix(tool, "mcp--"): // a tool of an MCP server
		return "mcp"
	default:
		for group, tools := range groups {
			if slices.Contains(tools, name) {
				return group
			}
		}
	}
	return ""
}

// Permits returns nil if a mode may use a tool, else an error in Roo's words. A tool that Roo does not know belongs
// to the group that the caller names; "always" is permitted everywhere.
func (m Mode) Permits(tool, group string) error {
	group = cmp.Or(GroupOf(tool), group)
	if _, ok := m.group(group); !ok && group != "always" {
		return fmt.Errorf("Tool %q is not allowed in %s mode.", tool, m.Slug) //nolint:staticcheck // Roo's words
	}
	return nil
}

// PermitsFile returns nil if a mode may edit a file with a tool, else an error in Roo's words. The path is relative to
// the workspace with "/" between its parts. It does not check whether the mode has the tool: Permits does.
func (m Mode) PermitsFile(tool, path string) error {
	g, ok := m.group("edit")
	if !ok || g.FileRegex == "" {
		return nil
	}
	if g.files == nil { // the group was made in code, not read from a file
		g.files, _ = compile(g.FileRegex)
	}
	if g.files != nil && g.files.match(path) {
		return nil
	}
	about := ""
	if g.Description != "" {
		about = " (" + g.Description + ")"
	}
	return fmt.Errorf( //nolint:staticcheck // Roo's words
		"Tool '%s' in mode '%s' can only edit files matching pattern: %s%s. Got: %s", tool, m.Name, g.FileRegex, about, path)
}

func (m Mode) group(name string) (Group, bool) {
	if i := slices.IndexFunc(m.Groups, func(g Group) bool { return g.Name == name }); i >= 0 && name != "" {
		return m.Groups[i], true
	}
	return Group{}, false
}

// Names returns the files that an editing call names in its parameters, as the model wrote them: a path, or those in
// the headers of a patch.
func Names(tool string, text func(parameter string) string) []string {
	if GroupOf(tool) != "edit" {
		return nil
	}
	var out []string
	for _, key := range []string{"path", "file_path"} {
		if path := text(key); path != "" {
			out = append(out, path)
			break
		}
	}
	if tool != "apply_patch" {
		return out
	}
	for line := range strings.Lines(text("patch")) {
		line = strings.TrimSpace(line)
		for _, head := range []string{"*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok && path != "" {
				out = append(out, strings.TrimSpace(path))
			}
		}
	}
	return out
}

// matchTime bounds the match of one name. A pattern with look-around may take time exponential in the name, and name
// and pattern may come from an attacker.
const matchTime = 200 * time.Millisecond

// pattern is a JavaScript pattern without flags.
type pattern struct {
	plain *regexp.Regexp  // where Go's engine gives the same results: it takes linear time
	full  *regexp2.Regexp // otherwise
}

// common matches patterns that both engines interpret alike.
var common = lazyregexp.New(`^(?:[A-Za-z0-9_/ .^$|*+?)\[\]-]|\((?:\?:)?|\\[dwDW./\\()\[\]^$|*+?-])*$`)

// notJavaScript matches syntax that the full engine accepts although JavaScript does not.
var notJavaScript = lazyregexp.New(`\(\?(?:[^:=!<]|<[^=!A-Za-z_$])`)

// Bounds of a pattern: the plain engine needs memory for the square of its length, and the full one writes out what a
// match begins with: up to 8 bytes for a byte of the pattern, and 4 times as many for each repeated group around it.
const (
	maxPattern = 4 << 10
	maxPrefix  = 16 << 20
)

func compile(text string) (*pattern, error) {
	if n := strings.Count(text, "){"); len(text) > maxPattern || len(text)<<(2*min(n, 12)+3) > maxPrefix {
		return nil, fmt.Errorf("a pattern of %d bytes that repeats %d groups is too large", len(text), n)
	}
	if notJavaScript().MatchString(strings.ReplaceAll(text, `\\`, "")) {
		return nil, fmt.Errorf("%q is no pattern: a group begins with (? and nothing that JavaScript knows", text)
	}
	full, err := regexp2.Compile(text, regexp2.ECMAScript)
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern: %w", text, err)
	}
	p := &pattern{full: full}
	full.MatchTimeout = matchTime
	// In JavaScript a class may be empty: [] matches nothing, and [^] anything. In Go the bracket after it is the first
	// character of the class.
	if common().MatchString(text) && !strings.Contains(text, "[]") && !strings.Contains(text, "[^]") {
		if plain, err := regexp.Compile(text); err == nil {
			p.plain = plain
		}
	}
	return p, nil
}

// match reports whether s matches the pattern. A match that takes too long counts as none, since the pattern grants
// permission.
func (p *pattern) match(s string) bool {
	if p.plain != nil {
		return p.plain.MatchString(s)
	}
	ok, err := p.full.MatchString(s)
	return ok && err == nil
}
