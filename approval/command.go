package approval

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Verdict is the result of judging a command line by patterns.
type Verdict struct {
	State  State  `json:"decision"`
	Parts  []Part `json:"parts"` // as far as the line could be read; never nil
	Reason string `json:"reason"`

	unsure bool // a deny pattern may cover it
}

// rule returns the pattern that decided; for an allowed chain, all of them.
func (v Verdict) rule(s State) string {
	var rules []string
	for _, p := range v.Parts {
		if p.State == s && !slices.Contains(rules, p.Rule) {
			rules = append(rules, p.Rule)
		}
	}
	if s == Deny && len(rules) > 1 {
		return rules[0]
	}
	return strings.Join(rules, ", ")
}

// Command judges a command line by patterns alone.
func Command(line string, allow, deny []string) Verdict {
	denies, allows := patterns(deny), patterns(allow)
	if strings.TrimSpace(line) == "" {
		return Verdict{State: Ask, Parts: []Part{}, Reason: "the command line is empty"}
	}
	if at := slices.IndexFunc(denies, func(p pattern) bool { return p.words[0] == "*" }); at >= 0 {
		rule := denies[at].text
		return Verdict{State: Deny, Parts: []Part{{line, rule, Deny}}, Reason: fmt.Sprintf("the pattern %q denies it", rule)}
	}
	seen := scanDenied(line, denies)
	v := Verdict{State: Ask, Parts: append([]Part{}, seen.parts...), unsure: seen.unsure != "" && len(denies) > 0}
	if rule := v.rule(Deny); rule != "" {
		v.State, v.Reason = Deny, fmt.Sprintf("the pattern %q denies it", rule)
		return v
	}
	if v.unsure {
		v.Reason = seen.unsure + ", so a deny pattern cannot be ruled out"
		return v
	}
	list, why := plainCommands(line)
	if why != "" {
		v.Reason = why
		return v
	}
	return judgeChain(v, list, allows)
}

// judgeChain judges the simple commands of a line one by one: all of them must be allowed. The reason is that of the
// first command that is not.
func judgeChain(v Verdict, list []simple, allows []pattern) Verdict {
	parts := make([]Part, 0, len(list))
	refused, allowed := "", ""
	for _, c := range list {
		part := Part{Text: c.text, State: Ask}
		rule, why := allowedBy(c.words, allows)
		switch {
		case why == "":
			part.Rule, part.State = rule, Allow
			allowed = fmt.Sprintf("the pattern %q allows it", rule)
		case refused == "" && len(list) > 1:
			refused = fmt.Sprintf("%s: %s", c.text, why)
		case refused == "":
			refused = why
		}
		parts = append(parts, part)
	}
	v.Parts = parts
	if refused != "" {
		v.Reason = refused
		return v
	}
	v.State, v.Reason = Allow, allowed
	if len(list) > 1 {
		v.Reason = "each of its commands is allowed"
	}
	return v
}

// allowedBy returns the pattern that allows a simple command, or the reason why none does.
func allowedBy(words []string, allows []pattern) (rule, why string) {
	why = "no pattern allows it"
	for _, p := range allows {
		if len(words) < len(p.words) || !slices.Equal(words[:len(p.words)], p.words) {
			continue
		}
		if why = cmp.Or(unnamedProgram(words, p.words), beyondPattern(words, len(p.words))); why == "" {
			return p.text, ""
		}
	}
	return "", why
}

func patterns(texts []string) []pattern {
	return api.Some(texts, func(text string) (pattern, bool) {
		w := strings.Fields(text)
		env := slices.IndexFunc(append(w, ""), func(word string) bool { return !assignment(word) })
		return pattern{text, w, env}, len(w) > 0
	})
}

// Pattern proposes the pattern for the answer "always": the program, or the program and its subcommand if it has
// subcommands. "" when no pattern would ever match this line.
func Pattern(line string) string {
	list, why := plainCommands(line)
	if why != "" || len(list) != 1 {
		return ""
	}
	words := list[0].words
	n := 1
	if listed("with-subcommands", unversioned(words[0])) {
		n = 2
		if len(words) < 2 || strings.HasPrefix(words[1], "-") {
			return ""
		}
		if len(words) > 2 && (words[1] == "run" || words[1] == "run-script") && !strings.HasPrefix(words[2], "-") {
			n = 3
		}
	}
	p := strings.Join(words[:n], " ")
	if Command(line, []string{p}, nil).State != Allow {
		return ""
	}
	return p
}

// simple is one simple command of plain words.
type simple struct {
	text  string // as written in the line
	words []string
}

const notSimple = "it is more than simple commands of plain words"

// maxParts bounds a chain: no person reads a longer one.
const maxParts = 32

// plainCommands returns the simple commands of a line that consists only of one of them, or of a chain or pipe of
// them; for any other line it returns why not.
func plainCommands(line string) (list []simple, why string) {
	switch {
	case otherShell:
		return nil, "command patterns are not used with this system's shell"
	case strings.Contains(line, "\n"):
		return nil, "it has several lines"
	case hasOddCharacter(line):
		return nil, "it holds control or invisible characters"
	case tooDeep(line):
		return nil, tooNested
	}
	for _, variant := range variants {
		f, err := syntax.NewParser(syntax.Variant(variant), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
		if err != nil {
			return nil, "it cannot be read as a shell command"
		}
		if len(f.Last) != 0 || len(f.Stmts) == 0 {
			return nil, notSimple
		}
		var got []simple
		for i, s := range f.Stmts {
			if s.Semicolon.IsValid() != (i < len(f.Stmts)-1) || !appendCommands(line, s, &got) {
				return nil, notSimple
			}
		}
		if list != nil && !slices.EqualFunc(list, got, simple.equal) {
			return nil, notSimple
		}
		list = got
	}
	for _, c := range list {
		if len(list) > 1 && hasWord("cd pushd popd", c.words[0]) {
			return nil, c.words[0] + " changes the folder in which the other commands run"
		}
	}
	return list, ""
}

const tooNested = "commands are nested too deep"

// tooDeep reports whether a line opens more brackets within each other than can be parsed in a few megabytes.
func tooDeep(line string) bool {
	open, most := 0, 0
	for i := range len(line) {
		switch line[i] {
		case '(', '[', '{':
			open++
		case ')', ']', '}':
			open = max(open-1, 0)
		}
		most = max(most, open)
	}
	return most > 1000
}

func (c simple) equal(o simple) bool { return c.text == o.text && slices.Equal(c.words, o.words) }

// appendCommands appends the simple commands of a statement.
func appendCommands(line string, s *syntax.Stmt, out *[]simple) bool {
	if s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Comments) > 0 || len(*out) >= maxParts {
		return false
	}
	if two, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		if two.Op != syntax.AndStmt && two.Op != syntax.OrStmt && two.Op != syntax.Pipe || len(s.Redirs) > 0 {
			return false
		}
		return !two.X.Semicolon.IsValid() && !two.Y.Semicolon.IsValid() && appendCommands(line, two.X, out) &&
			appendCommands(line, two.Y, out)
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return false
	}
	if slices.ContainsFunc(s.Redirs, makesFile) {
		return false
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		v, ok := plainWord(w)
		if !ok {
			return false
		}
		words[i] = v
	}
	if !programName(words[0]) {
		return false
	}
	*out = append(*out, simple{line[s.Pos().Offset():statementEnd(s)], words})
	return true
}

// programName reports whether a name consists of letters that cannot be mistaken for others. Jobs (%1) and words that
// begin with a dash are no names.
func programName(s string) bool {
	other := func(r rune) bool { return r == '=' || r >= 0x80 }
	return s != "" && s[0] != '-' && s[0] != '%' && !strings.ContainsFunc(s, other)
}

// statementEnd returns the end of a statement's own text, without the separator after it.
func statementEnd(s *syntax.Stmt) uint {
	if s.Semicolon.IsValid() {
		return s.Semicolon.Offset()
	}
	return s.End().Offset()
}

// makesFile reports whether a redirection may make or read a file: any redirection may, except one that joins the two
// outputs, or leads to /dev/null.
func makesFile(r *syntax.Redirect) bool {
	if r.Hdoc != nil || r.Word == nil || r.N != nil && r.N.Value != "0" && r.N.Value != "1" && r.N.Value != "2" {
		return true
	}
	to := r.Word.Lit()
	switch r.Op {
	case syntax.DplOut:
		return to != "1" && to != "2"
	case syntax.RdrOut, syntax.AppOut:
		return to != "/dev/null" || r.N != nil && r.N.Value == "0"
	case syntax.RdrIn:
		return to != "/dev/null" || r.N != nil && r.N.Value != "0"
	}
	return true
}

var variants = []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}

// special are characters that any shell may expand outside quotes.
const special = "*?[]{}~!#^$`\\<>|&;()=%\"'"

// revisions matches what git takes for an ancestor of a commit (HEAD~2, main^..) or an entry of a log (stash@{0}). A
// shell expands "~" only at the beginning of a word, and after "=" and ":", and braces only with a comma or two dots.
var revisions = lazyregexp.New(`([0-9A-Za-z_@])[~^][0-9~^]*(\.|:|$)|@\{-?\w+\}`)

func withoutRevisions(s string) string { return revisions().ReplaceAllString(s, "$1$2") }

// plainWord evaluates a word made of letters and simple quotes only.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			// "=" and "%" are harmless after the first character, as in --a=b.
			if strings.ContainsAny(strings.NewReplacer("=", "", "%", "").Replace(withoutRevisions(part.Value)), special) ||
				b.Len() == 0 && strings.HasPrefix(part.Value, "=") {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\`$!") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// beyondPattern returns why a pattern does not cover a command of plain words, "" when it does. The pattern names the
// first own words.
func beyondPattern(words []string, own int) string {
	name := path.Base(words[0])
	if listed("wrappers", name) || listed("wrappers", strings.ToLower(name)) || isLoader(name) {
		return name + " can run other commands"
	}
	if strings.HasPrefix(name, "python") && len(words) > 2 && words[1] == "-m" && listed("python-modules", words[2]) {
		return beyondPattern(words[2:], max(own-2, 0))
	}
	p, known := table().known[name]
	if known && !filepath.IsLocal(words[0]) {
		return "patterns cover " + name + " only by its name, without a folder"
	}
	if !known || name != words[0] {
		if listed("copiers", name) && strings.Contains(strings.Join(words[own:], " "), ":") {
			return name + " would contact another host"
		}
		return usage{words: plainFile()}.beyondUsage(name, words, own, true)
	}
	if len(p.subs) == 0 {
		return p.beyondUsage(name, words, own, false)
	}
	if at := slices.IndexFunc(words, signature().MatchString); name == "git" && at >= 0 {
		return "git runs gpg for " + words[at]
	}
	at := 1
	for at < len(words) && hasWord(p.before, words[at]) {
		at++
	}
	if at == len(words) {
		if at > 1 && words[at-1] == "--version" {
			return ""
		}
		return name + " without a subcommand is not known to be harmless"
	}
	if strings.HasPrefix(words[at], "-") {
		return "options before " + name + "'s subcommand can change what it runs"
	}
	u, ok := p.subs[words[at]]
	if !ok {
		return name + " " + words[at] + " is not known to be harmless"
	}
	return u.beyondUsage(name+" "+words[at], words[at:], max(own-at, 0), false)
}

// signature matches a format of git that shows whether a signature is good.
var signature = lazyregexp.New(`%[-+ ]?G|%\(\*?signature`)

// changesRepository reports whether a line has a git command that may run the repository's hooks, or contact another
// repository; any reports whether it has a git command.
func changesRepository(list []simple) (changes, any bool) {
	p := table().known["git"]
	for _, c := range list {
		if c.words[0] != "git" {
			continue
		}
		any = true
		for _, w := range c.words[1:] {
			if !hasWord(p.before, w) {
				changes = changes || p.subs[w].hooks
				break
			}
		}
	}
	return changes, any
}

// unnamedProgram returns why a pattern does not name the program that a command runs, "" when it does: python -m runs
// any module, and uv run any program.
func unnamedProgram(words, p []string) string {
	name := path.Base(words[0])
	for i, w := range words[1:] {
		if hasWord(table().launchers[name], w) && len(p) < i+3 {
			return "the pattern must name what " + strings.Join(words[:i+2], " ") + " runs"
		}
	}
	if !isInterpreter(name) || len(table().known[name].subs) > 0 {
		return ""
	}
	for _, w := range p[1:] {
		if !strings.HasPrefix(w, "-") {
			return ""
		}
	}
	if len(words) > 1 {
		return "the pattern must name what " + words[0] + " runs"
	}
	return words[0] + " without a program reads it from its input"
}

// State is the result of a decision.
type State string

// The states.
const (
	Allow State = "allow"
	Ask   State = "ask"
	Deny  State = "deny"
)

// hasOddCharacter reports whether a line has a character that may look different from what runs, or that shells treat
// specially.
func hasOddCharacter(line string) bool {
	return !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool {
		return r != ' ' && (!unicode.IsPrint(r) || blankLetter(r)) // the blank is the only space that IsPrint knows
	})
}

// blankLetter reports whether a letter or mark is invisible.
func blankLetter(r rune) bool {
	return r == 0x034F || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 || r == 0x3164 || r == 0xFFA0 ||
		r == 0x2800 || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}

// word is a word of a line, as far as it is known before the line runs.
type word struct {
	text  string
	known bool
}

func words(ws []*syntax.Word) []word {
	out := make([]word, len(ws))
	for i, w := range ws {
		out[i].text, out[i].known = literal(w.Parts, false)
	}
	return out
}

// literal evaluates parts that hold no expansions and, outside quotes, no patterns.
func literal(parts []syntax.WordPart, quoted bool) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			alone := part.Value == "[" && len(parts) == 1 // the program of that name
			if !quoted && !alone && strings.ContainsAny(withoutRevisions(part.Value), "*?[{~^") {
				return "", false
			}
			b.WriteString(unescape(part.Value, quoted))
		case *syntax.SglQuoted:
			if !part.Dollar {
				b.WriteString(part.Value)
				continue
			}
			s, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{part}})
			if err != nil {
				return "", false
			}
			b.WriteString(s)
		case *syntax.DblQuoted:
			s, ok := literal(part.Parts, true)
			if !ok {
				return "", false
			}
			b.WriteString(s)
		default:
			return "", false
		}
	}
	return b.String(), true
}

func unescape(s string, quoted bool) string {
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("\"\\$`\n", s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func baseName(s string) string { return strings.TrimSuffix(strings.ToLower(path.Base(s)), ".exe") }

var otherShell = runtime.GOOS == "windows"

// isStream reports whether a word names a file that refers to an open one. A pattern that covers such a word would
// not name what the program runs: "echo TEXT | go run /dev/stdin".
func isStream(a string) bool {
	a = path.Clean(a)
	return a == "/dev/stdin" || strings.HasPrefix(a, "/dev/fd/") || strings.HasPrefix(a, "/proc/") && strings.Contains(a, "/fd/")
}
