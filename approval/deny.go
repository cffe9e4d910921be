package approval

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// sight is what was seen of a line by someone who looks for denied commands.
type sight struct {
	parts  []Part
	unsure string // why something may run that was not seen, "" = nothing
}

const maxDepth = 8 // of command lines inside command lines

// look reads a line in both ways a shell may read it; the denials of both count,
// the parts are those of the first that can be read.
func look(line string, denies []pattern) sight {
	var out sight
	if cr := strings.ReplaceAll(line, "\r", "\n"); cr != line { // some shells end a line there
		if s := look(cr, denies); denied(s.parts) {
			return s
		}
	}
	for i, variant := range variants {
		s := lookAs(variant, line, denies, 0)
		if out.unsure == "" && (i == 0 || s.unsure != unreadable) {
			out.unsure = s.unsure
		}
		if len(out.parts) == 0 || denied(s.parts) && !denied(out.parts) {
			out.parts = s.parts
		}
	}
	if out.unsure == "" && otherShell {
		out.unsure = "this system's shell reads it in its own way"
	}
	if out.unsure == "" && odd(strings.NewReplacer("\n", " ", "\t", " ").Replace(line)) {
		out.unsure = "it holds control or invisible characters"
	}
	return out
}

func denied(parts []Part) bool {
	for _, p := range parts {
		if p.Decision == Deny {
			return true
		}
	}
	return false
}

const unreadable = "it cannot be read as a shell command"

func lookAs(variant syntax.LangVariant, line string, denies []pattern, depth int) sight {
	var out sight
	if depth > maxDepth {
		out.unsure = "commands are nested too deep"
		return out
	}
	f, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(line), "")
	if err != nil {
		out.unsure = unreadable
		out.parts = []Part{{Command: line, Decision: Ask}}
		return out
	}
	note := func(why string) {
		if out.unsure == "" {
			out.unsure = why
		}
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if why := fed(n); why != "" {
				note(why)
			}
		case *syntax.ParamExp:
			if n.Excl || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
				note("it holds an expansion that can run commands")
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 && len(n.Assigns) == 0 {
				return true
			}
			c, ws, env := line[n.Pos().Offset():n.End().Offset()], words(n.Args), assigned(n.Assigns)
			if len(n.Args) > 0 {
				c = line[n.Args[0].Pos().Offset():n.End().Offset()]
			}
			part := Part{Command: c, Decision: Ask}
			var s sight
			if len(ws) > 0 {
				s = judge(variant, ws, denies, depth)
			}
			if !denied(s.parts) {
				s = judgeAssigned(s, env, ws, denies)
			}
			for _, a := range n.Assigns {
				if len(ws) > 0 && s.unsure == "" && a.Name != nil && steering.MatchString(a.Name.Value) {
					s.unsure = "the variable " + a.Name.Value + " can name what " + ws[0].text + " runs"
				}
			}
			if len(ws) == 0 && !denied(s.parts) && s.unsure == "" {
				return true // assignments alone; what they substitute is walked
			}
			if denied(s.parts) {
				part.Decision, part.Rule = Deny, s.parts[0].Rule
			}
			if s.unsure != "" {
				note(s.unsure)
			}
			out.parts = append(out.parts, part)
		case *syntax.DeclClause, *syntax.LetClause:
			for _, p := range denies {
				if p.words[0] == "*" {
					out.parts = append(out.parts, Part{Command: "declaration", Rule: p.text, Decision: Deny})
				}
			}
		}
		return true
	})
	return out
}

// fed: text of the line is the input of a program that may read commands from it.
func fed(s *syntax.Stmt) string {
	for _, r := range s.Redirs {
		if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && r.Op != syntax.WordHdoc {
			continue
		}
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return "text of the line is the input of what may read commands"
		}
		ws := words(call.Args)
		name := baseName(ws[0].text)
		if _, known := knownPrograms[name]; !known && !onlyText[name] {
			return name + " may read commands from the line's text"
		}
		for _, w := range ws[1:] {
			if (name == "make" || name == "gmake") && (w.text == "-f-" || w.text == "-" || stream(w.text)) {
				return name + " reads commands from the line's text"
			}
		}
	}
	return ""
}

// onlyText are programs that take their input as text.
var onlyText = set("tee", "patch", "read", "base64", "gzip", "cksum")

// word is a word as far as it is known before the line runs.
type word struct {
	text  string
	known bool
}

func words(ws []*syntax.Word) []word {
	out := make([]word, len(ws))
	for i, w := range ws {
		known := true
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.BraceExp:
				known = false
			case *syntax.DblQuoted, *syntax.SglQuoted:
				_, single := n.(*syntax.SglQuoted)
				return !single
			case *syntax.Lit:
				if strings.ContainsAny(n.Value, "*?[{~^") && !insideQuotes(w, n) {
					known = false
				}
			}
			return known
		})
		text := ""
		if known {
			text, known = literal(w.Parts, false)
		}
		out[i] = word{text, known}
	}
	return out
}

// literal evaluates parts that hold no expansions.
func literal(parts []syntax.WordPart, quoted bool) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
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

func insideQuotes(w *syntax.Word, lit *syntax.Lit) bool {
	for _, p := range w.Parts {
		if d, ok := p.(*syntax.DblQuoted); ok && d.Pos().Offset() <= lit.Pos().Offset() && lit.End().Offset() <= d.End().Offset() {
			return true
		}
	}
	return false
}

// assigned are the assignments in front of a command, as words of a pattern.
func assigned(list []*syntax.Assign) []word {
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

// judgeAssigned looks for patterns that begin with assignments ("A=1 make"): the
// assignments stand before the command, in any order, among others.
func judgeAssigned(s sight, env, ws []word, denies []pattern) sight {
	for _, p := range denies {
		if p.env == 0 {
			continue
		}
		got := yes
		for _, want := range p.words[:p.env] {
			got = min(got, matchAssigned(env, want))
		}
		if rest := p.words[p.env:]; len(rest) > 0 && len(ws) > 0 {
			got = min(got, match(ws, rest))
		} else if len(rest) > 0 {
			got = no
		}
		switch got {
		case yes:
			return sight{parts: []Part{{Rule: p.text, Decision: Deny}}}
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

// judge looks for denied commands in one simple command, and in those that it
// runs itself.
func judge(variant syntax.LangVariant, ws []word, denies []pattern, depth int) sight {
	var out sight
	hit := func(p pattern) sight { return sight{parts: []Part{{Rule: p.text, Decision: Deny}}} }
	ws = oneWord(ws)
	why := runsOthers(ws)
	runs := why != ""
	for _, p := range denies {
		for i := range ws {
			if i > 0 && !runs {
				break
			}
			switch match(ws[i:], p.words) {
			case yes:
				return hit(p)
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
			out.unsure = "what " + ws[0].text + " runs is only known then"
		case strings.ContainsAny(w.text, " \t\n;|&(`"):
			s := lookAs(variant, w.text, denies, depth+1)
			if denied(s.parts) {
				for _, part := range s.parts {
					if part.Decision == Deny {
						return sight{parts: []Part{part}}
					}
				}
			}
			if s.unsure != "" {
				out.unsure = s.unsure
			}
		}
	}
	if out.unsure == "" {
		out.unsure = why
	}
	return out
}

// oneWord spells git-push as git push.
func oneWord(ws []word) []word {
	name := baseName(ws[0].text)
	if sub, ok := strings.CutPrefix(name, "git-"); ok && ws[0].known && sub != "" {
		return append([]word{{"git", true}, {sub, true}}, ws[1:]...)
	}
	return ws
}

func baseName(s string) string { return strings.TrimSuffix(strings.ToLower(path.Base(s)), ".exe") }

type answer int

const (
	no answer = iota
	maybe
	yes
)

// match compares a simple command with a deny pattern. Options between the
// pattern's words are passed over, each with or without a value of its own. It
// works from the end and remembers, since a hostile line may have many options.
func match(ws []word, p []string) answer {
	switch {
	case p[0] == "*":
		return yes
	case !ws[0].known:
		return maybe
	case baseName(ws[0].text) != baseName(p[0]):
		return no
	}
	ws, p = ws[1:], p[1:]
	next := make([]answer, len(ws)+2) // for the pattern's words behind the current one
	for i := range next {
		next[i] = yes
	}
	for j := len(p) - 1; j >= 0; j-- {
		cur := make([]answer, len(ws)+2) // a pattern that needs more words: no
		short := len(p[j]) > 1 && p[j][0] == '-' && p[j][1] != '-' && cluster(ws, p[j][1:])
		for i := len(ws) - 1; i >= 0; i-- {
			w := ws[i]
			if !w.known {
				cur[i] = maybe
				continue
			}
			if strings.EqualFold(w.text, p[j]) {
				cur[i] = next[i+1]
			}
			if short {
				cur[i] = max(cur[i], next[i], next[i+1])
			}
			if strings.HasPrefix(w.text, "-") {
				cur[i] = max(cur[i], cur[i+1], cur[i+2])
			}
		}
		next = cur
	}
	return next[0]
}

// cluster: all letters of a short option stand among the command's short
// options, in whatever order and grouping (-rf, -fr, -r -f).
func cluster(ws []word, letters string) bool {
	have := ""
	for _, w := range ws {
		if len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' {
			have += w.text[1:]
		}
	}
	for _, l := range letters {
		if !strings.ContainsRune(have, l) {
			return false
		}
	}
	return true
}
