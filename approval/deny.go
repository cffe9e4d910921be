package approval

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

// denyScan is the result of a search for denied commands in a line.
type denyScan struct {
	parts  []Part
	unsure string // why something may run that the scan does not see, "" = nothing
}

const maxDepth = 8 // how deep command lines may nest in command lines

// scanDenied reads a line in both ways in which a shell may read it. Denials of both readings count; the parts are
// those of the first possible reading.
func scanDenied(line string, denies []pattern) denyScan {
	var out denyScan
	if cr := strings.ReplaceAll(line, "\r", "\n"); cr != line { // some shells end a line at a carriage return
		if s := scanDenied(cr, denies); hasDenied(s.parts) {
			return s
		}
	}
	for i, variant := range variants {
		s := scanDeniedAs(variant, line, denies, 0)
		if out.unsure == "" && (i == 0 || s.unsure != unreadable) {
			out.unsure = s.unsure
		}
		if len(out.parts) == 0 || hasDenied(s.parts) && !hasDenied(out.parts) {
			out.parts = s.parts
		}
	}
	if out.unsure == "" && otherShell {
		out.unsure = "this system's shell reads it in its own way"
	}
	if out.unsure == "" && hasOddCharacter(strings.NewReplacer("\n", " ", "\t", " ").Replace(line)) {
		out.unsure = "it holds control or invisible characters"
	}
	return out
}

func hasDenied(parts []Part) bool { return slices.ContainsFunc(parts, isDenied) }

func isDenied(p Part) bool { return p.State == Deny }

const unreadable = "it cannot be read as a shell command"

func scanDeniedAs(variant syntax.LangVariant, line string, denies []pattern, depth int) denyScan {
	if depth > maxDepth || tooDeep(line) {
		return denyScan{[]Part{{Text: line, State: Ask}}, tooNested}
	}
	f, err := syntax.NewParser(syntax.Variant(variant), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
	if err != nil {
		return denyScan{[]Part{{Text: line, State: Ask}}, unreadable}
	}
	var out denyScan
	note := func(why string) { out.unsure = cmp.Or(out.unsure, why) }
	if strings.Contains(line, "$\\\n") { // the parser does not join "$" to the next line, as shells do
		note("a line ends within an expansion")
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment:
			if strings.HasSuffix(n.Text, "\n") { // the parser joins a comment to the next line, which a shell runs
				note("a comment ends with a backslash")
			}
		case *syntax.Stmt:
			note(inputText(n))
		case *syntax.ParamExp:
			if n.Excl || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
				note("it holds an expansion that can run commands")
			}
		case *syntax.CoprocClause:
			if n.Name != nil {
				note("the name of a coproc may be a command")
			}
		case *syntax.Assign:
			if n.Name != nil && n.Name.Value == "PS4" || evaluates(n) {
				note("a shell may run what the value of a variable names")
			}
		case *syntax.TestClause, *syntax.LetClause:
			if evaluates(n) {
				note(subscriptRuns)
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 && len(n.Assigns) == 0 {
				return true
			}
			if len(n.Args) > 0 && listed("evaluators", baseName(n.Args[0].Lit())) && evaluates(n) {
				note(subscriptRuns)
			}
			c, ws, env := line[n.Pos().Offset():n.End().Offset()], words(n.Args), assignments(n.Assigns)
			if len(n.Args) > 0 {
				c = line[n.Args[0].Pos().Offset():n.End().Offset()]
			}
			part := Part{Text: c, State: Ask}
			var s denyScan
			if len(ws) > 0 {
				s = judgeCommand(variant, ws, denies, depth)
			}
			if !hasDenied(s.parts) {
				s = judgeAssigned(s, env, ws, denies)
			}
			for _, a := range n.Assigns {
				if len(ws) > 0 && s.unsure == "" && a.Name != nil && steering().MatchString(a.Name.Value) {
					s.unsure = "the variable " + a.Name.Value + " can name what " + ws[0].text + " runs"
				}
			}
			if len(ws) == 0 && !hasDenied(s.parts) && s.unsure == "" {
				return true // only assignments; the walk covers what they substitute
			}
			if hasDenied(s.parts) {
				part.State, part.Rule = Deny, s.parts[0].Rule
			}
			note(s.unsure)
			out.parts = append(out.parts, part)
		}
		return true
	})
	return out
}

const subscriptRuns = "a shell may run what is in the brackets of a word"

// subscript matches the index of a variable with a substitution, and evaluates reports whether a quoted one is in n: test,
// printf -v, arithmetic and others evaluate it.
var subscript = lazyregexp.New("\\[[^]]*(\\$\\(|`)")

func evaluates(n syntax.Node) bool {
	var b strings.Builder
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.SglQuoted:
			text, ok := literal([]syntax.WordPart{n}, false)
			if !ok {
				text = "[$(" // nobody can tell
			}
			b.WriteString(text)
		case *syntax.CmdSubst, *syntax.ProcSubst: // the scan sees what is in them
			return false
		}
		return true
	})
	return subscript().MatchString(b.String())
}

// inputText returns why a program may read commands from text of the line, or a shell may take words of a statement for
// another command, "" = none does.
func inputText(s *syntax.Stmt) string {
	for _, r := range s.Redirs {
		if (r.Op == syntax.RdrAll || r.Op == syntax.AppAll) && s.Cmd != nil && r.Pos().After(s.Cmd.Pos()) && s.Cmd.End().After(r.End()) {
			return "some shells read what follows &> as another command"
		}
		if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && r.Op != syntax.WordHdoc {
			continue
		}
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return "a program may read commands from text of the line"
		}
		ws := words(call.Args)
		name := baseName(ws[0].text)
		if _, known := table().known[name]; !known && !listed("text-readers", name) {
			return name + " may read commands from the line's text"
		}
		for _, w := range ws[1:] {
			if (name == "make" || name == "gmake") && (w.text == "-f-" || w.text == "-" || isStream(w.text)) {
				return name + " reads commands from the line's text"
			}
		}
	}
	return ""
}

// assignments returns the assignments before a command, as words of a pattern.
func assignments(list []*syntax.Assign) []word {
	var out []word
	for _, a := range list {
		if a.Name == nil {
			continue
		}
		w := word{text: a.Name.Value + "=", known: !a.Append && a.Index == nil && a.Array == nil}
		if a.Value != nil && w.known {
			v := words([]*syntax.Word{a.Value})[0]
			w.text, w.known = w.text+v.text, v.known
		}
		out = append(out, w)
	}
	return out
}

// judgeAssigned looks for patterns that begin with assignments ("A=1 make"): the assignments come before the command,
// in any order, among others.
func judgeAssigned(s denyScan, env, ws []word, denies []pattern) denyScan {
	for _, p := range denies {
		if p.env == 0 {
			continue
		}
		got := yes
		for _, want := range p.words[:p.env] {
			got = min(got, matchAssigned(env, want))
		}
		if rest := p.words[p.env:]; len(rest) > 0 && len(ws) > 0 {
			got = min(got, matchDeny(ws, rest))
		} else if len(rest) > 0 {
			got = no
		}
		switch got {
		case yes:
			return denyScan{parts: []Part{{Rule: p.text, State: Deny}}}
		case maybe:
			s.unsure = "its words are only known when it runs"
		}
	}
	return s
}

func matchAssigned(env []word, want string) answer {
	name, _, _ := strings.Cut(want, "=")
	got := no
	for _, w := range env {
		switch {
		case w.known && w.text == want:
			return yes
		case !w.known && strings.HasPrefix(w.text, name+"="):
			got = maybe
		}
	}
	return got
}

// judgeCommand looks for denied commands in one simple command, and in the commands that it runs itself.
func judgeCommand(variant syntax.LangVariant, ws []word, denies []pattern, depth int) denyScan {
	var out denyScan
	ws = splitDashed(ws)
	why := runsOthers(ws)
	runs := why != ""
	for _, p := range denies {
		for i := range ws {
			if i > 0 && !runs {
				break
			}
			switch matchDeny(ws[i:], p.words) {
			case yes:
				return denyScan{parts: []Part{{Rule: p.text, State: Deny}}}
			case maybe:
				out.unsure = "its words are only known when it runs"
			}
		}
	}
	if !runs || len(denies) == 0 {
		return out
	}
	for _, w := range ws[1:] {
		switch {
		case !w.known:
			out.unsure = "what " + ws[0].text + " runs is only known when it runs"
		case strings.ContainsAny(w.text, " \t\n;|&(`"):
			s := scanDeniedAs(variant, w.text, denies, depth+1)
			if at := slices.IndexFunc(s.parts, isDenied); at >= 0 {
				return denyScan{parts: s.parts[at : at+1]}
			}
			if s.unsure != "" {
				out.unsure = s.unsure
			}
		}
	}
	out.unsure = cmp.Or(out.unsure, why)
	return out
}

// splitDashed turns the program git-push into the words git and push. It drops a leading "--", as in "time -- rm".
func splitDashed(ws []word) []word {
	if len(ws) > 1 && ws[0].text == "--" {
		ws = ws[1:]
	}
	name := baseName(ws[0].text)
	if sub, ok := strings.CutPrefix(name, "git-"); ok && ws[0].known && sub != "" {
		return append([]word{{"git", true}, {sub, true}}, ws[1:]...)
	}
	return ws
}

type answer int

const (
	no answer = iota
	maybe
	yes
)

// matchDeny compares a simple command with a deny pattern. Options between the pattern's words are skipped, each with
// or without a value of its own, and the pattern's own options may stand anywhere. It works from the end and remembers
// results, since a hostile line may have many options.
func matchDeny(ws []word, p []string) answer {
	switch {
	case !ws[0].known:
		return maybe
	case baseName(ws[0].text) != baseName(p[0]):
		return no
	}
	ws, p = ws[1:], p[1:]
	next := make([]answer, len(ws)+2) // for the words of the pattern after the current one
	for i := range next {
		next[i] = yes
	}
	for j := len(p) - 1; j >= 0; j-- {
		cur := make([]answer, len(ws)+2) // a pattern that needs more words does not match
		option := hasOption(ws, p[j])
		for i := len(ws) - 1; i >= 0; i-- {
			w := ws[i]
			if !w.known {
				cur[i] = maybe
				continue
			}
			if strings.EqualFold(w.text, p[j]) {
				cur[i] = next[i+1]
			}
			cur[i] = max(cur[i], min(option, max(next[i], next[i+1])))
			if strings.HasPrefix(w.text, "-") {
				cur[i] = max(cur[i], cur[i+1], cur[i+2])
			}
		}
		next = cur
	}
	return next[0]
}

// hasOption reports whether a command has an option anywhere among its words: a long one with or without a value, or all
// letters of a short one in any order and grouping (-rf, -fr, -r -f).
func hasOption(ws []word, option string) answer {
	if !strings.HasPrefix(option, "-") {
		return no
	}
	got, have := no, ""
	for _, w := range ws {
		switch {
		case !w.known:
			got = maybe
		case strings.EqualFold(w.text, option) || strings.HasPrefix(w.text, option+"="):
			return yes
		case strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--"):
			have += w.text[1:]
		}
	}
	if len(option) > 1 && option[1] != '-' && strings.Trim(option[1:], have) == "" {
		return yes
	}
	return got
}

// Part is one simple command of a line.
type Part struct {
	Text  string `json:"command"`
	Rule  string `json:"rule"` // the pattern that decided, "" for none
	State State  `json:"decision"`
}

type pattern struct {
	text  string
	words []string
	env   int // number of words at the beginning that are assignments
}

func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && syntax.ValidName(name)
}

// isLoader reports whether a name is that of the program with which the system starts programs.
func isLoader(name string) bool {
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld.so")
}

// sedPlain are scripts that print, delete or replace, and run nothing. A slash in brackets may be a part of an address.
var sedPlain = lazyregexp.New(strings.ReplaceAll(`^((LINE)(,(LINE))?)?([pdq=]|s(/[^/]*/[^/]*/|\|[^|]*\|[^|]*\||#[^#]*#[^#]*#|,[^,]*,[^,]*,)[gpiI0-9]*)$`,
	"LINE", `[0-9]+|\$|/([^/\\[]|\\.|\[\^?[^]/^[\\][^]/[\\]*\])*/`))

// runsOthers returns why a simple command may run other commands, named by later words; "" = it runs none.
func runsOthers(ws []word) string {
	name := baseName(ws[0].text)
	for _, w := range ws[1:] {
		if hasWord(table().launchers[name], w.text) && name != "go" {
			return name + " " + w.text + " runs other commands"
		}
	}
	switch {
	case !ws[0].known:
		return "its words are only known when it runs"
	case isInterpreter(name) && table().runs[name].verbs == "":
		return inlineText(name, ws[1:])
	case name == "command" && len(ws) > 1 && (ws[1].text == "-v" || ws[1].text == "-V"):
		return ""
	case name == "alias" || name == "trap":
		return name + " changes what later words run"
	case (listed("wrappers", name) || isLoader(name)) && !listed("builtins", name):
		return name + " runs other commands"
	case name == "sed" || name == "gsed":
		return sedRuns(name, ws[1:])
	case name == "git":
		return gitRuns(ws)
	}
	return table().runs[name].runsOther(name, ws[1:])
}

// runsOther describes what makes the program run another command, "" = nothing.
func (u usage) runsOther(name string, args []word) string {
	for _, w := range args {
		long, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		switch {
		case u == usage{}:
			return ""
		case !w.known:
			return "what " + name + " runs is only known when it runs"
		case hasWord(u.verbs, w.text):
			return name + " " + w.text + " runs other commands"
		case !strings.HasPrefix(w.text, "-"):
			continue
		case strings.HasPrefix(w.text, "--") || u.single:
			for o := range strings.FieldsSeq(u.long) {
				if long == o || strings.HasPrefix(w.text, "--") && long != "" && strings.HasPrefix(o, long) {
					return "the option " + w.text + " makes " + name + " run other commands"
				}
			}
		case strings.ContainsAny(w.text, u.short):
			return "the option " + w.text + " makes " + name + " run other commands"
		}
	}
	return ""
}

// gitRuns returns why a git command may run other commands: settings on the command line, and aliases, can run
// anything.
func gitRuns(ws []word) string {
	for i := 1; i < len(ws); i++ {
		switch t := ws[i].text; {
		case !ws[i].known:
			return "what git runs is only known when it runs"
		case t == "-C" || t == "--git-dir" || t == "--work-tree" || t == "--namespace":
			i++
		case strings.HasPrefix(t, "-c") || strings.HasPrefix(t, "--config-env") || strings.HasPrefix(t, "--exec-path="):
			return "the option " + t + " can make git run other commands"
		case strings.HasPrefix(t, "-"):
		default:
			if _, known := table().known["git"].subs[t]; !known {
				return "git " + t + " may be an alias, or run other commands"
			}
			if why := table().runs["git:"+t].runsOther("git "+t, ws[i+1:]); why != "" {
				return why
			}
			return table().runs["git"].runsOther("git", ws[i+1:])
		}
	}
	return ""
}

// inlineText returns why an interpreter runs program text from the line or from its input. A script file is not such
// text.
func inlineText(name string, args []word) string {
	usage := table().interpreters[unversioned(name)]
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case !args[i].known:
			return "what " + name + " runs is only known when it runs"
		case text == "-" || text == "-s" || isStream(text):
			return name + " reads commands from its input"
		case text == "--version" || text == "--help":
			return ""
		case !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+"):
			return ""
		case text[0] == '+' || !usage.isHarmlessOption(text):
			return "the option " + text + " can give " + name + " program text"
		}
		letter := strings.IndexAny(text, usage.valued)
		if letter < 0 || strings.HasPrefix(text, "--") {
			continue
		}
		value := word{text[letter+1:], true}
		if value.text == "" && i+1 < len(args) {
			i++
			value = args[i]
		}
		switch {
		case !value.known:
			return "what " + name + " runs is only known when it runs"
		case text[letter] == 'm' && listed("python-text-modules", value.text):
			return name + " -m " + value.text + " runs program text"
		case text[letter] == 'm': // another module is like a script file
			return ""
		}
	}
	return name + " reads commands from its input"
}

// sedRuns returns why sed may run commands or write files: each of its scripts can do both. A script in a file is
// like any other script file.
func sedRuns(name string, args []word) string {
	usage := table().interpreters[name]
	var scripts, operands []word
	given := false // an option gives the script
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch script, long := strings.CutPrefix(text, "--expression="); {
		case long:
			given = true
			scripts = append(scripts, word{script, args[i].known})
		case text == "-f" || text == "--file":
			given = true
			i++
		case strings.HasPrefix(text, "-") && strings.HasSuffix(text, "e") && usage.isHarmlessOption(text[:len(text)-1]):
			given = true
			i++
			scripts = append(scripts, args[min(i, len(args)):min(i+1, len(args))]...)
		case text == "-" || !strings.HasPrefix(text, "-"):
			operands = append(operands, args[i])
		case !usage.isHarmlessOption(text):
			return "the option " + text + " can give " + name + " program text"
		}
	}
	if !given {
		scripts = operands[:min(len(operands), 1)]
	}
	for _, s := range scripts {
		switch {
		case !s.known:
			return "what " + name + " does is only known when it runs"
		case !sedPlain().MatchString(s.text):
			return name + " runs program text"
		}
	}
	return ""
}

// steering are variables that name what programs run.
var steering = lazyregexp.New(`(?i)(EDITOR|PAGER|BROWSER|SHELL|COMMAND|SSH|ASKPASS|OPTIONS|OPT)$|^(LD_|DYLD_|GIT_|BASH_ENV$|ENV$|PATH$|PERL5|PYTHON(PATH|STARTUP)|RUBYOPT|NODE_OPTIONS)`)
